"""Which tensors make a planned buffer as large as it is.

Tensors share memory when they do not live at the same time, so their sizes do not add up to the
buffer's. Here every byte of the buffer belongs to the largest tensor that is ever planned over
it, and what no tensor covers is a gap.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from harness.footprint.anatomy import Part, Path, Tally


@dataclass(frozen=True)
class Planned:
    name: str
    offset: int
    size: int


def owners(buffer: Path, size: int, tensors: Iterable[Planned]) -> tuple[Part, ...]:
    """Parts under ``buffer`` that sum to ``size``."""
    tally = Tally()
    waiting = sorted((t for t in tensors if t.size), key=lambda t: t.offset)
    edges = sorted({0, size, *(e for t in waiting for e in (t.offset, t.offset + t.size))})
    alive: list[tuple[int, int, Planned]] = []  # largest first
    counted: set[int] = set()
    following = 0
    for low, high in pairwise(edges):
        if low >= size:
            break
        while following < len(waiting) and waiting[following].offset <= low:
            tensor = waiting[following]
            heapq.heappush(alive, (-tensor.size, following, tensor))
            following += 1
        while alive and alive[0][2].offset + alive[0][2].size <= low:
            heapq.heappop(alive)
        name, once = "gap", 1
        if alive:
            name, once = alive[0][2].name, int(alive[0][1] not in counted)
            counted.add(alive[0][1])
        tally.add((*buffer, name), min(high, size) - low, once)
    return tally.parts()
