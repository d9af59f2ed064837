"""What torch and torchao do slowly, done sooner with the same result.

Seen in profiles of torch 2.13 and torchao 0.18: work that is repeated is a fifth of what a test
costs, and the search for the range of a 16-bit activation most of what a test with one costs. None
of it changes a result, not by a bit; where a function is not there, or is not the one that was
looked at, it is left as it is.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

OBSERVERS = "torchao.quantization.pt2e.observer"
# sha256 of the source of HistogramObserver._non_linear_param_search (torchao 0.18.0)
_SEARCH = "9306a687ba73a3044c555e58d19ad69b11ee000779a3088e55da08b954b472eb"
_STEP = 1e-5  # of quantiles, in that function


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


def quicken_search(observers: Any) -> bool:
    """``observers``: torchao's module of them, or None. Says whether it was done."""
    histogram = getattr(observers, "HistogramObserver", None)
    original = getattr(histogram, "_non_linear_param_search", None)
    if histogram is None or original is None:
        return False
    try:
        source = inspect.getsource(original)
    except (OSError, TypeError):
        return False
    if hashlib.sha256(source.encode()).hexdigest() != _SEARCH:
        return False

    @wraps(original)
    def quick(self: Any) -> Any:
        found = range_of_histogram(self)
        return original(self) if found is None else found

    histogram._non_linear_param_search = quick
    return True


def range_of_histogram(observer: Any) -> tuple[Any, Any] | None:
    """What ``HistogramObserver._non_linear_param_search`` finds; None where that must be asked.

    There two quantiles come together in 100,000 steps, and for each the bins are compared one by
    one, each a tensor. The quantiles are always the same and the sums only grow, so the bin of
    every quantile is found at once, and steps that move nothing are passed over.
    """
    import numpy as np
    import torch

    if observer.histogram.dtype != torch.float32:
        return None
    bin_width = (observer.max_val - observer.min_val) / observer.bins
    total = torch.sum(observer.histogram).item()
    sums = torch.cumsum(observer.histogram, dim=0).numpy()
    if not (0 < total < np.inf and len(sums) == observer.bins and bool(np.all(np.diff(sums) >= 0))):
        return None
    alphas, betas = _quantiles()
    # torch compares a float32 tensor with a Python number in float32
    left = np.searchsorted(sums, (alphas[1:] * total).astype(np.float32), "left")
    right = np.searchsorted(sums, (betas[1:] * total).astype(np.float32), "right") - 1
    down = -right
    up, low, norm_min = 0, 0, float("inf")
    start, end = 0, observer.bins - 1
    while alphas[up] < betas[low]:
        first = min(end, max(start, int(left[up])))
        last = max(start, min(end, int(right[low])))
        next_start, next_end = start, end
        if first - start > end - last:
            next_start = first
            up += 1
        else:
            next_end = last
            low += 1
        if (next_start, next_end) == (start, end):
            if first == start:  # nothing moves until the upper quantile is below the last bin
                low = max(low, int(np.searchsorted(down, -end, "right")))
                low = min(low, len(down) - 1)
            continue
        norm = observer._compute_quantization_error(next_start, next_end)
        if norm > norm_min:
            break
        norm_min = norm
        start, end = next_start, next_end
    low_value = observer.min_val + bin_width * start
    return low_value, observer.min_val + bin_width * (end + 1)


@lru_cache(maxsize=1)
def _quantiles() -> tuple[Any, Any]:
    """The lower ones going up from 0 and the upper ones going down from 1, each step added."""
    import numpy as np

    steps = np.full(round(1 / _STEP) + 2, _STEP)
    return (
        np.add.accumulate(np.concatenate(([0.0], steps))),
        np.add.accumulate(np.concatenate(([1.0], -steps))),
    )
