"""Gives each byte of a FlatBuffer to exactly one path.

The caller claims the things that it has names for, the specific before the general. A claim of a
table or field takes everything below it that is still unclaimed, so that shared things (mostly
strings) belong to their first claimant. ``account`` then finds the bytes that were claimed twice or
never. Nothing is visited twice, so even a hostile file takes time proportional to its size.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator

from harness.core.errors import MalformedFile
from harness.formats.flatbuffer import FlatBuffer, Table, Vector
from harness.formats.schema import Field
from harness.size.anatomy import UNKNOWN, PartPath, Tally

INSIDE_TABLES = ("padding", "inside tables")
_FLATBUFFER_ALIGNMENT = 32  # force_align of the program inside a .bpte
_LARGEST_ALIGNMENT = 1 << 16  # larger than any page size that a file is aligned to
_NOBODY = -1  # the owner of bytes that the caller accounts for itself


class Claims:
    """The owners of the bytes of ``buffer``. Vtables and inner padding go to ``general``/..."""

    def __init__(self, buffer: FlatBuffer, general: PartPath) -> None:
        self.buffer = buffer
        self._general = general
        self._tables: dict[int, int] = {}  # position -> type
        self._runs: dict[int, int] = {}  # position -> end, of vectors and strings
        self._labels: dict[PartPath, int] = {}
        self._things: dict[int, int] = defaultdict(int)
        self._padding: dict[int, int] = defaultdict(int)
        self._starts, self._ends, self._owners = array("q"), array("q"), array("q")

    def table(self, table: Table | None, path: PartPath) -> None:
        """Give the table, and everything unclaimed below it, to ``path``."""
        if table is not None:
            label = self._label(path)
            self._things[label] += 1
            self._claim_all([(table.pos, table.type)], label)

    def field(self, table: Table, name: str, path: PartPath) -> None:
        """Give the target of a field (not its slot in the table) to ``path``."""
        offset = self.buffer.layout(table.type, table.pos).offsets.get(name)
        if offset is not None:
            label = self._label(path)
            self._things[label] += 1
            field = self.buffer.schema.tables[table.type].by_name[name]
            self._claim_all([*self._targets(table.pos, table.type, offset, field, label)], label)

    def bytes(self, start: int, end: int, path: PartPath) -> None:
        self._add(start, end, self._label(path))

    def reserve(self, vector: Vector, path: PartPath) -> bool:
        """Leaves a vector's elements to the caller; only its length goes to ``path``.

        Returns False when the vector was claimed before.
        """
        start, end = vector.data - 4, vector.end
        if start in self._runs:
            return False
        self._runs[start] = end
        self._add(start, start + 4, self._label(path))
        self._add(start + 4, end, _NOBODY)
        return True

    def _claim_all(self, pending: list[tuple[int, int]], label: int) -> None:
        while pending:
            pos, kind = pending.pop()
            claimed_kind = self._tables.get(pos)
            if claimed_kind == kind:
                continue
            if claimed_kind is not None:
                names = self.buffer.schema.tables
                raise MalformedFile(
                    f"one table is both a {names[claimed_kind].name} and a {names[kind].name}", pos
                )
            self._tables[pos] = kind
            layout = self.buffer.layout(kind, pos)
            self._add(pos, pos + layout.size, label)
            if layout.padding:
                self._padding[label] += layout.padding
            for offset, field in layout.references:
                pending += self._targets(pos, kind, offset, field, label)

    def _targets(
        self, pos: int, kind: int, offset: int, field: Field, label: int
    ) -> Iterator[tuple[int, int]]:
        """Claims what a field points to; of tables it yields position and type instead."""
        position = pos + offset
        if field.kind == "union":
            member = self.buffer.union_member(Table(self.buffer, kind, pos), field, position)
            if member is not None:
                yield member.pos, member.type
            return
        target = self.buffer.follow(position)
        if field.kind == "table":
            yield target, field.index
        elif field.kind == "string":
            self._string(target, label)
        else:
            yield from self._vector(target, field, label)

    def _string(self, pos: int, label: int) -> None:
        buffer = self.buffer
        _, end = buffer.vector_extent(pos, 1)
        if end >= buffer.limit or buffer.view[end] != 0:
            raise MalformedFile("a string does not end in a zero byte", end)
        self._run(pos, end + 1, label)

    def _vector(self, pos: int, field: Field, label: int) -> Iterator[tuple[int, int]]:
        _, end = self.buffer.vector_extent(pos, field.size)
        if not self._run(pos, end, label) or field.kind == "vector of scalar":
            return
        for slot in range(pos + 4, end, 4):
            if field.kind == "vector of table":
                yield self.buffer.follow(slot), field.index
            elif field.kind == "vector of string":
                self._string(self.buffer.follow(slot), label)

    def _run(self, start: int, end: int, label: int) -> bool:
        """Claim bytes; return False when the same ones were claimed before."""
        claimed_end = self._runs.get(start)
        if claimed_end == end:
            return False
        if claimed_end is not None:
            raise MalformedFile("two objects of different size start here", start)
        self._runs[start] = end
        self._add(start, end, label)
        return True

    def _add(self, start: int, end: int, label: int) -> None:
        self._starts.append(start)
        self._ends.append(end)
        self._owners.append(label)

    def _label(self, path: PartPath) -> int:
        return self._labels.setdefault(path, len(self._labels))

    def account(self, tally: Tally) -> None:
        """Add everything that was claimed to ``tally``, and the gaps between.

        Raises MalformedFile when two objects claim one byte."""
        import numpy as np  # deferred: many commands import this module and read no program

        for pos, (end, kind) in self.buffer.vtables.items():
            name = self.buffer.schema.tables[kind].name
            self._run(pos, end, self._label((*self._general, "vtables", name)))
        order = np.argsort(np.array(self._starts), kind="stable")
        starts, ends = np.array(self._starts)[order], np.array(self._ends)[order]
        owners = np.array(self._owners)[order]
        overlaps = np.flatnonzero(ends[:-1] > starts[1:])
        if overlaps.size:
            raise MalformedFile("two objects overlap", int(starts[overlaps[0] + 1]))
        owned = owners != _NOBODY
        sums = np.bincount(owners[owned], weights=(ends - starts)[owned])
        for path, label in self._labels.items():
            padding = self._padding[label]
            things = max(1, self._things[label])
            tally.add(path, int(sums[label]) - padding if label < sums.size else 0, things)
            tally.add((*self._general, *INSIDE_TABLES), padding)
        lows = np.concatenate([[0], ends])
        highs = np.concatenate([starts, [self.buffer.limit]])
        view, unknown_fields = self.buffer.view, self.buffer.has_unknown_fields
        for i in np.flatnonzero(highs > lows):
            low, high = int(lows[i]), int(highs[i])
            classify_gap(view, low, high, self._general, tally, unknown_fields=unknown_fields)


def classify_gap(
    view: memoryview,
    start: int,
    end: int,
    where: PartPath,
    tally: Tally,
    *,
    unknown_fields: bool = False,
) -> None:
    """Accounts for ``[start, end)``.

    Padding is zero, and shorter than the largest alignment inside a FlatBuffer or than the
    alignment of what follows it. Other bytes are unreferenced, or unknown if ``unknown_fields``:
    the file has fields that the schema lacks, which may refer to them.
    """
    if end <= start:
        return
    size = end - start
    aligned = size < _FLATBUFFER_ALIGNMENT or _alignment(end) > size
    if size < _LARGEST_ALIGNMENT and aligned and not any(view[start:end]):
        tally.add(("padding", *where), size)
    elif unknown_fields:
        tally.add((UNKNOWN, *where), size)
    else:
        tally.add(("unreferenced", *where), size)


def _alignment(position: int) -> int:
    return position & -position if position else _LARGEST_ALIGNMENT
