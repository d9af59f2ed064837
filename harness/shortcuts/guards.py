"""The text of a guard is made of expressions that are parsed and printed over and over, and a
model that is quantised is captured twice with the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

# of torch._dynamo.guards.build_guard_function (torch 2.13.0): texts in, texts out
_BUILDS = "6dda0d6e669fb49bce08a153800253189b74336a203ccb8dff0ef2f3c65e7872"
_KEPT = 1024


def patches() -> Iterator[Patch]:
    from torch._dynamo import guards

    build: Any = getattr(guards, "build_guard_function", None)
    if is_the_source(build, _BUILDS):
        yield Patch(guards, "build_guard_function", build_once(build))


def build_once(
    build: Callable[[list[str], str], tuple[str, str]],
) -> Callable[[list[str], str], tuple[str, str]]:
    @lru_cache(maxsize=_KEPT)
    def built(expressions: tuple[str, ...], arguments: str) -> tuple[str, str]:
        return build(list(expressions), arguments)

    return lambda expressions, arguments: built(tuple(expressions), arguments)
