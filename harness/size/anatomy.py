"""An Anatomy: every byte of a file under a path, and the memory that the file asks for.

Paths go from the general to the specific, ``("constants", "int8[64,1,5,5]")``. The parts sum
to ``total``, always; a group of ``memory`` sums to the size of that memory.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

PartPath = tuple[str, ...]
UNKNOWN = "unknown"
NO_SYMBOL = "no symbol"  # bytes of an ELF between its functions and objects
_MOST_PARTS = 600  # approximate number of parts of a folded anatomy
_SMALL = "(smaller parts)"


@dataclass(frozen=True)
class Part:
    """``bytes`` under a path, made of ``count`` things."""

    path: PartPath
    bytes: int
    count: int = 1


@dataclass(frozen=True)
class Anatomy:
    """The account of a file's bytes.

    ``memory``: what the file needs besides its bytes (planned buffers, NPU scratch), by path.
    ``dropped``: what the linker left out. ``notes``: sentences about what could not be measured.
    ``users``: the operator that uses a constant, by path."""

    kind: str  # "pte", "bpte", "elf"
    total: int
    parts: tuple[Part, ...]
    memory: tuple[Part, ...] = ()
    dropped: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    users: Mapping[PartPath, str] = field(default_factory=dict, compare=False)

    @property
    def unknown(self) -> int:
        """Bytes whose meaning is not known."""
        return sum(p.bytes for p in self.parts if p.path[-1] == NO_SYMBOL or UNKNOWN in p.path)

    def under(self, *prefix: str) -> int:
        """Bytes of the parts whose path starts with ``prefix``."""
        return sum(p.bytes for p in self.parts if p.path[: len(prefix)] == prefix)

    def to_fields(self) -> dict[str, Any]:
        def items(parts: Iterable[Part]) -> list[dict[str, Any]]:
            return [
                {"path": join(p.path), "bytes": p.bytes, "count": p.count}
                for p in sorted(parts, key=lambda p: (-p.bytes, p.path))
            ]

        return {
            "kind": self.kind,
            "total": self.total,
            "unknown": self.unknown,
            "parts": items(self.parts),
            "memory": items(self.memory),
            "dropped": items(self.dropped),
            "notes": list(self.notes),
        }


def join(path: PartPath) -> str:
    """Return a path as one string; a slash inside a name becomes ``%2F``."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in path)


def split(text: str) -> PartPath:
    return tuple(name.replace("%2F", "/").replace("%25", "%") for name in text.split("/"))


def shown(path: PartPath) -> str:
    """Return a path for people."""
    return " > ".join(path)


@dataclass
class Tally:
    """Adds up bytes and things by path while a file is read."""

    bytes: dict[PartPath, int] = field(default_factory=lambda: defaultdict(int))
    count: dict[PartPath, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, path: PartPath, size: int, count: int = 1) -> None:
        if size:
            self.bytes[path] += size
            self.count[path] += count

    def extend(self, parts: Iterable[Part], prefix: PartPath = ()) -> None:
        for part in parts:
            self.add((*prefix, *part.path), part.bytes, part.count)

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(p, n, max(1, self.count[p])) for p, n in self.bytes.items())


class Numbering:
    """Numbers things of one name, in order of appearance: "x", "x #2", "x #3".

    An inserted thing shifts only the numbers of its own name, so that a difference does not
    spread over everything after it.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def name(self, base: str) -> str:
        self._seen[base] += 1
        times = self._seen[base]
        return base if times == 1 else f"{base} #{times}"


def group(parts: Iterable[Part], key: Callable[[PartPath], PartPath]) -> tuple[Part, ...]:
    """Return the parts summed by a shorter path."""
    tally = Tally()
    for part in parts:
        tally.add(key(part.path), part.bytes, part.count)
    return tally.parts()


class Span(NamedTuple):
    """The bytes ``[start, end)`` of a memory.

    Where spans overlap, the one of least ``rank`` owns the bytes; of equal ranks, the first."""

    start: int
    end: int
    rank: int
    name: str


def sweep(spans: Iterable[Span], size: int) -> Iterator[tuple[int, Span | None]]:
    """Yield the stretches of ``[0, size)`` in order: the length of each, and its owner or None."""
    waiting = sorted((s for s in spans if s.start < s.end), key=lambda span: span.start)
    alive: list[tuple[int, int]] = []  # (rank, index in ``waiting``), least rank first
    following = 0
    edges = sorted({0, size, *(edge for span in waiting for edge in span[:2])})
    for low, high in pairwise(edges):
        if low >= size:
            break
        while following < len(waiting) and waiting[following].start <= low:
            heapq.heappush(alive, (waiting[following].rank, following))
            following += 1
        while alive and waiting[alive[0][1]].end <= low:
            heapq.heappop(alive)
        yield min(high, size) - low, waiting[alive[0][1]] if alive else None


@dataclass(frozen=True)
class FoldedAnatomy:
    """The short form that references store: parts below ``threshold`` bytes are combined."""

    anatomy: Anatomy
    threshold: int

    @classmethod
    def of(cls, anatomy: Anatomy) -> FoldedAnatomy:
        """Folds an anatomy by the threshold that leaves a few hundred parts."""
        sizes = sorted((p.bytes for p in anatomy.parts), reverse=True)
        threshold = 1 if len(sizes) <= _MOST_PARTS else sizes[_MOST_PARTS]
        kept = replace(_fold(anatomy, threshold), notes=())
        return cls(
            replace(kept, parts=_uncounted(kept.parts), memory=_uncounted(kept.memory)), threshold
        )

    def fold(self, other: Anatomy) -> Anatomy:
        """``other`` folded by the same threshold, so that the two can be compared."""
        return _fold(other, self.threshold)

    def to_fields(self) -> dict[str, Any]:
        def flat(parts: tuple[Part, ...]) -> dict[str, int]:
            return dict(sorted((join(p.path), p.bytes) for p in parts))

        return {
            "kind": self.anatomy.kind,
            "total": self.anatomy.total,
            "threshold": self.threshold,
            "memory": flat(self.anatomy.memory),
            "parts": flat(self.anatomy.parts),
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> FoldedAnatomy:
        def parts(name: str) -> tuple[Part, ...]:
            return _uncounted(Part(split(p), int(n)) for p, n in fields[name].items())

        kept = Anatomy(str(fields["kind"]), int(fields["total"]), parts("parts"), parts("memory"))
        return cls(kept, int(fields["threshold"]))


def _fold(anatomy: Anatomy, threshold: int) -> Anatomy:
    """Parts below ``threshold`` bytes summed under their second-level path."""
    tally = Tally()
    for part in anatomy.parts:
        small = part.bytes < threshold and len(part.path) > 2
        tally.add((*part.path[:2], _SMALL) if small else part.path, part.bytes, part.count)
    return replace(anatomy, parts=tally.parts(), dropped=())


def _uncounted(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Sizes alone, one for each path, in the order of a file."""
    sizes: dict[PartPath, int] = defaultdict(int)
    for part in parts:
        sizes[part.path] += part.bytes
    return tuple(Part(path, sizes[path]) for path in sorted(sizes, key=join))
