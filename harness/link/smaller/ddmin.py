"""Delta debugging: the smallest part of a list that still does it (Zeller, Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def ddmin(items: Sequence[_T], still: Callable[[Sequence[_T]], bool]) -> list[_T]:
    """A sublist for which ``still`` holds and from which no single item can go.

    ``still(items)`` must hold. The empty list is tried too.
    """
    current = list(items)
    if current and still([]):
        return []
    parts = 2
    while len(current) >= 2:
        size = -(-len(current) // parts)
        chunks = [current[i : i + size] for i in range(0, len(current), size)]
        for number, _ in enumerate(chunks):
            rest = [x for k, chunk in enumerate(chunks) if k != number for x in chunk]
            if still(rest):
                current, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(current):
                break
            parts = min(len(current), parts * 2)
    return current
