"""What changed between two anatomies: added, removed, grew, shrank, renamed; most first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from harness.footprint.anatomy import Anatomy, Part, Path, join

_USED_BY = " of "  # a planned tensor's name: its shape, and the operator it belongs to
_ALIKE = 0.6  # of two names' letters, for one to be the other's new name
_MOST_PAIRS = 20_000  # names compared letter by letter; beyond that, renames stay add + remove


@dataclass(frozen=True)
class Change:
    """``old_path`` is set when the thing had another path. Bytes are 0 where it did not exist."""

    path: Path
    old: int
    new: int
    old_path: Path | None = None

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
        return {
            "kind": self.kind, "path": join(self.path), "old": self.old, "new": self.new,
            "delta": self.delta, "old_path": self.old_path and join(self.old_path),
        }  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """``parts`` of the file and ``memory`` that it asks for, most bytes first."""

    old_total: int
    new_total: int
    parts: tuple[Change, ...]
    memory: tuple[Change, ...]

    @property
    def delta(self) -> int:
        return self.new_total - self.old_total

    def to_fields(self) -> dict[str, Any]:
        return {
            "old_total": self.old_total, "new_total": self.new_total, "delta": self.delta,
            "parts": [c.to_fields() for c in self.parts],
            "memory": [c.to_fields() for c in self.memory],
        }  # fmt: skip


def difference(old: Anatomy, new: Anatomy) -> Difference:
    return Difference(
        old.total, new.total, changes(old.parts, new.parts), changes(old.memory, new.memory)
    )


def changes(old: Iterable[Part], new: Iterable[Part]) -> tuple[Change, ...]:
    """Every path whose bytes differ, and those that changed their name."""
    before = {p.path: p.bytes for p in old}
    after = {p.path: p.bytes for p in new}
    found = [
        Change(path, before[path], size)
        for path, size in after.items()
        if path in before and before[path] != size
    ]
    gone = {p: n for p, n in before.items() if p not in after}
    come = {p: n for p, n in after.items() if p not in before}
    found += _renamed(gone, come)
    found += [Change(path, size, 0) for path, size in gone.items()]
    found += [Change(path, 0, size) for path, size in come.items()]
    return tuple(sorted(found, key=lambda c: (-abs(c.delta), c.path)))


def _renamed(gone: dict[Path, int], come: dict[Path, int]) -> list[Change]:
    """Pairs taken out of both: same name elsewhere, same size beside it, or a name alike."""
    found: list[Change] = []

    def pair(old: Path, new: Path) -> None:
        found.append(Change(new, gone.pop(old), come.pop(new), old))

    elsewhere: dict[tuple[str, int], list[Path]] = defaultdict(list)
    beside: dict[Path, list[Path]] = defaultdict(list)
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
        scored = [(_likeness(p[-1], path[-1]), gone[p] == size, p) for p in candidates]
        best = max(scored, default=(0.0, False, ()), key=lambda s: (s[0], s[1]))
        if best[0] >= _ALIKE:
            pair(best[2], path)
    return found


def _likeness(a: str, b: str) -> float:
    """0 for tensors of different shape or for numbered twins: those are other things."""
    if "[" in a or "#" in a or "#" in b:
        return float(_USED_BY in a and a.split(_USED_BY)[0] == b.split(_USED_BY)[0])
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


@dataclass(frozen=True)
class GrowthCause:
    """A change, or ``things`` changes below one path that have no one large among them."""

    path: Path
    delta: int
    things: int
    change: Change | None


def causes(found: Sequence[Change]) -> list[GrowthCause]:
    """The changes with the scattered ones put together, most bytes first.

    Padding comes last, whatever its size: it only follows from the other changes.
    """
    resized = [c for c in found if c.delta]
    exploded = _explode((), resized) if resized else []
    return sorted(exploded, key=lambda c: ("padding" in c.path, -abs(c.delta)))


def _explode(path: Path, found: Sequence[Change]) -> list[GrowthCause]:
    if len(found) == 1:
        return [GrowthCause(found[0].path, found[0].delta, 1, found[0])]
    below: dict[Path, list[Change]] = defaultdict(list)
    for change in found:
        below[change.path[: len(path) + 1]].append(change)
    if len(below) == 1:
        deeper, only = next(iter(below.items()))
        if deeper == path:
            return [GrowthCause(c.path, c.delta, 1, c) for c in only]
        return _explode(deeper, only)
    moved = sum(abs(c.delta) for c in found)
    largest = max(abs(sum(c.delta for c in group)) for group in below.values())
    if path and len(found) > 4 and largest * 4 < moved:
        return [GrowthCause(path, sum(c.delta for c in found), len(found), None)]
    return [
        cause
        for deeper, group in below.items()
        for cause in (
            [GrowthCause(c.path, c.delta, 1, c) for c in group]
            if deeper == path
            else _explode(deeper, group)
        )
    ]
