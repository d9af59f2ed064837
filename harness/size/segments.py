"""Accounts for the data segments behind the FlatBuffer of a ``.pte`` or ``.ptd``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from harness.formats.damage import DamagedFile
from harness.formats.flatbuffer import Table
from harness.size.anatomy import Path, Tally
from harness.size.claims import classify_gap
from harness.size.program_tables import Constant


@dataclass(frozen=True)
class DataSegment:
    """``[start, end)`` in the file."""

    start: int
    end: int


Owner = Callable[[DataSegment], None]


def segments_of(root: Table, base: int, file_size: int) -> list[DataSegment]:
    """The segments that a root table lists. Raises DamagedFile for one outside the file."""
    segments: list[DataSegment] = []
    for table in root.items("segments"):
        start, size = base + table.get("offset"), table.get("size")
        if start + size > file_size:
            raise DamagedFile(
                f"segment {len(segments)} ends {start + size - file_size} bytes behind the end "
                "of the file: it is truncated",
                table.pos,
            )
        segments.append(DataSegment(start, start + size))
    return segments


def account(
    view: memoryview,
    segments: list[DataSegment],
    owner_of: Mapping[int, Owner],
    start: int,
    tally: Tally,
) -> None:
    """Account for everything from ``start`` to the end of ``view``."""
    at = start
    for index, segment in sorted(enumerate(segments), key=lambda s: (s[1].start, s[1].end)):
        if segment.end == segment.start:
            continue
        if segment.start < at:
            raise DamagedFile(f"segment {index} overlaps what is before it", segment.start)
        classify_gap(view, at, segment.start, ("between segments",), tally)
        owner = owner_of.get(index)
        if owner is None:
            tally.add(("unreferenced", f"segment {index}"), segment.end - segment.start)
        else:
            owner(segment)
        at = segment.end
    classify_gap(view, at, len(view), ("end of file",), tally)


def tensors(
    view: memoryview,
    segment: DataSegment,
    offsets: Mapping[int, int],
    known: Mapping[int, Constant],
    path: Path,
    tally: Tally,
) -> None:
    """A segment of constant data: ``offsets`` by tensor index, names and sizes in ``known``."""
    length = segment.end - segment.start
    places: dict[int, list[int]] = {}
    for index, offset in offsets.items():
        if offset > length:
            raise DamagedFile(f"constant {index} starts behind its segment", segment.start)
        places.setdefault(offset, []).append(index)
    edges = [*sorted(places), length]
    classify_gap(view, segment.start, segment.start + edges[0], ("before constants",), tally)
    for start, end in pairwise(edges):
        named = [known[index] for index in places[start] if index in known]
        if named:
            largest = max(named, key=lambda n: n.size)
            used = any(n.used for n in named)
            size = min(largest.size, end - start)
            tally.add((*path, replace(largest, used=used).label), size)
            low = segment.start + start + size
            classify_gap(view, low, segment.start + end, ("between constants",), tally)
        else:
            which = ", ".join(map(str, places[start]))
            tally.add(("unreferenced", f"constant {which}"), end - start)
