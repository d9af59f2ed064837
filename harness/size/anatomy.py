"""An Anatomy: every byte of a file under a path, and the memory that the file asks for.

Paths go from the general to the specific, ``("constants", "int8[64,1,5,5]")``. The parts sum
to ``total``, always; a group of ``memory`` sums to the size of that memory.

Between two anatomies a part is added, removed, grew, shrank or was renamed: the changes, largest
first, and a sentence for each cause.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

from harness.core.tables import read_table

PartPath = tuple[str, ...]
UNKNOWN = "unknown"
NO_SYMBOL = "no symbol"  # bytes of an ELF between its functions and objects
_MOST_PARTS = 600  # approximate number of parts of a folded anatomy
_SMALL = "(smaller parts)"
_USED_BY = " of "  # a planned tensor's name: its shape, and the operator it belongs to
_RENAME_SIMILARITY = 0.6  # least similarity of two names that count as a rename
_MOST_PAIRS = 20_000  # of names to compare; beyond that, a rename counts as added and removed


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

    def extend(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self.add(part.path, part.bytes, part.count)

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
        kept = _fold(anatomy, threshold)
        parts, memory = _uncounted(kept.parts), _uncounted(kept.memory)
        return cls(replace(kept, parts=parts, memory=memory, notes=()), threshold)

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


@dataclass(frozen=True)
class Change:
    """``old_path``: the path before a rename. ``old`` or ``new`` is 0 where it does not exist."""

    path: PartPath
    old: int
    new: int
    old_path: PartPath | None = None

    @property
    def delta(self) -> int:
        return self.new - self.old

    @property
    def kind(self) -> str:
        if self.old_path is not None:
            return "renamed"
        if not self.old or not self.new:
            return "added" if self.new else "removed"
        return "grew" if self.delta > 0 else "shrank"

    def to_fields(self) -> dict[str, Any]:
        paths = {"path": join(self.path), "old_path": self.old_path and join(self.old_path)}
        return {**vars(self), **paths, "kind": self.kind, "delta": self.delta}


@dataclass(frozen=True)
class Difference:
    """``parts`` of the file and the ``memory`` that it needs, most bytes first."""

    old_total: int
    new_total: int
    parts: tuple[Change, ...]
    memory: tuple[Change, ...]

    @property
    def delta(self) -> int:
        return self.new_total - self.old_total

    def to_fields(self) -> dict[str, Any]:
        return {
            "old_total": self.old_total,
            "new_total": self.new_total,
            "delta": self.delta,
            "parts": [c.to_fields() for c in self.parts],
            "memory": [c.to_fields() for c in self.memory],
        }


def difference(old: Anatomy, new: Anatomy) -> Difference:
    return Difference(
        old.total, new.total, changes(old.parts, new.parts), changes(old.memory, new.memory)
    )


def changes(old: Iterable[Part], new: Iterable[Part]) -> tuple[Change, ...]:
    """Every path whose size or name changed."""
    before = {p.path: p.bytes for p in old}
    after = {p.path: p.bytes for p in new}
    changed = [
        Change(path, before[path], size)
        for path, size in after.items()
        if path in before and before[path] != size
    ]
    gone = {p: n for p, n in before.items() if p not in after}
    come = {p: n for p, n in after.items() if p not in before}
    changed += _renamed(gone, come)
    changed += [Change(path, size, 0) for path, size in gone.items()]
    changed += [Change(path, 0, size) for path, size in come.items()]
    return tuple(sorted(changed, key=lambda c: (-abs(c.delta), c.path)))


def _renamed(gone: dict[PartPath, int], come: dict[PartPath, int]) -> list[Change]:
    """Move pairs out of both: the same name elsewhere, or a similar name under the same parent."""
    renames: list[Change] = []

    def pair(old: PartPath, new: PartPath) -> None:
        renames.append(Change(new, gone.pop(old), come.pop(new), old))

    elsewhere: dict[tuple[str, int], list[PartPath]] = defaultdict(list)
    beside: dict[PartPath, list[PartPath]] = defaultdict(list)
    for path, size in gone.items():
        elsewhere[path[-1], size].append(path)
        beside[path[:-1]].append(path)
    for path, size in list(come.items()):
        if same := elsewhere.get((path[-1], size)):
            pair(same.pop(), path)
    for path, size in list(come.items()):
        candidates = [p for p in beside.get(path[:-1], ()) if p in gone]
        if len(candidates) * len(come) > _MOST_PAIRS:
            continue
        scored = [(_similarity(p[-1], path[-1]), gone[p] == size, p) for p in candidates]
        best = max(scored, default=(0.0, False, ()), key=lambda s: (s[0], s[1]))
        if best[0] >= _RENAME_SIMILARITY:
            pair(best[2], path)
    return renames


def _similarity(a: str, b: str) -> float:
    """Return the similarity of two names, 0 to 1.

    It is 0 for tensors of different shapes and for numbered things of one name, which are different
    things."""
    if "[" in a or "#" in a or "#" in b:
        return float(_USED_BY in a and a.split(_USED_BY)[0] == b.split(_USED_BY)[0])
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


# A path and its change, or several changes below it, none of which is large by itself.
_Cause = tuple[PartPath, Sequence[Change]]


def _combine(path: PartPath, changed: Sequence[Change]) -> list[_Cause]:
    """Combine ``changed``: all below ``path``, which may itself be one of them."""
    if len(changed) == 1 or all(c.path == path for c in changed):
        return [(c.path, [c]) for c in changed]
    below: dict[PartPath, list[Change]] = defaultdict(list)
    for change in changed:
        below[change.path[: len(path) + 1]].append(change)
    moved = sum(abs(c.delta) for c in changed)
    largest = max(abs(sum(c.delta for c in group)) for group in below.values())
    if path and len(below) > 1 and len(changed) > 4 and largest * 4 < moved:
        return [(path, changed)]
    return [cause for deeper, group in below.items() for cause in _combine(deeper, group)]


def reasons(difference: Difference, enough: int) -> list[str]:
    """Sentences about the file first, then about the memory it needs."""
    return [*sentences(difference.parts, enough), *sentences(difference.memory, enough)]


def sentences(changed: Sequence[Change], enough: int | None = None) -> list[str]:
    """Return a sentence for each cause, the largest first, up to ``enough`` bytes.

    ``+312 B: added the constant tensor int8[64].`` Scattered small changes have one together.
    Padding comes last, whatever its size: it is a consequence of the other changes."""
    lines, explained = [], 0
    combined = _combine((), [c for c in changed if c.delta])
    causes = [(sum(c.delta for c in group), path, group) for path, group in combined]
    for delta, path, group in sorted(causes, key=lambda c: ("padding" in c[1], -abs(c[0]))):
        if enough is not None and explained >= enough:
            break
        text = f"{len(group)} changes in {shown(path)}, none of them large by itself"
        lines.append(f"{delta:+d} B: {text if len(group) > 1 else _describe(group[0])}.")
        explained += abs(delta)
    return lines


def subject(path: PartPath) -> str:
    name, parent = path[-1], path[-2] if len(path) > 1 else "the file"
    for words, phrase in read_table(__file__):
        if path[0] == words[0] and all(word in path for word in words):
            return str(phrase).format(name=name, parent=parent)
    where = shown(path[:-1])
    return f"{name} in {where}" if where else name


def _describe(change: Change) -> str:
    thing = subject(change.path)
    if change.old_path is not None:
        old = change.old_path[-1]
        origin = f"{old} to" if old != change.path[-1] else f"{shown(change.old_path[:-1])} to"
        return f"renamed {origin} {thing} ({change.old} -> {change.new} B)"
    if change.kind in ("added", "removed"):
        return f"{change.kind} {thing}"
    return f"{thing} {change.kind} from {change.old} to {change.new} B"
