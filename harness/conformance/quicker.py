"""Work that torch repeats with the same result, done once: a fifth of what a test costs.

Seen in a profile of torch 2.13 (``cProfile``, 84 Ethos-U tests). Nothing here changes a result;
a torch without these functions is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class Once:
    """Calls ``work`` again only after ``outdated``."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._current = False

    def __call__(self) -> None:
        if not self._current:
            self._current = True
            self._work()

    def outdated(self) -> None:
        self._current = False


class _Parameters(type):
    def __getitem__(cls, _parameters: object) -> type:
        return cls

    def __instancecheck__(cls, instance: object) -> bool:
        return callable(instance)


class AnyCallable(metaclass=_Parameters):
    """``collections.abc.Callable`` for annotations that nobody reads."""


def quicken() -> Once | None:
    """``outdated`` of what is returned must be called before every test."""
    import torch
    from torch._export import utils

    # py_impl evaluates its annotations at each of its calls, 35,000 times in a test.
    if hasattr(torch._ops, "Callable"):
        torch._ops.Callable = AnyCallable  # type: ignore[misc, assignment, unused-ignore]
    # Looks at every operator of the dispatcher, for each of 43 namespaces, five times in a test.
    if not hasattr(utils, "_materialize_cpp_cia_ops"):
        return None
    once = Once(utils._materialize_cpp_cia_ops)
    utils._materialize_cpp_cia_ops = once
    library: Any = torch.library.Library
    for name in ("define", "impl", "fallback"):  # what adds to the dispatcher
        setattr(library, name, _after(getattr(library, name), once.outdated))
    return once


def _after(function: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    @wraps(function)
    def both(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        finally:
            then()

    return both
