"""Reads a FlatBuffer by its schema; every position is checked before it is used.

Offsets in a FlatBuffer are relative and unsigned, so they only point forward, except the one from
a table to its vtable (https://flatbuffers.dev/internals). Damage raises MalformedFile.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.core.errors import MalformedFile
from harness.formats.schema import Field, Schema

MOST_PARTS = 300_000  # half a kilobyte each where they are counted; an unrolled GRU has 10,000
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_U16 = struct.Struct("<H").unpack_from


@dataclass(frozen=True)
class TableLayout:
    """The layout that a vtable gives its tables.

    ``offsets``: where each field is, from the table's start.

    ``references`` are the fields that point elsewhere. ``size`` reaches to the end of the last
    field; ``padding`` counts the bytes between the fields."""

    size: int
    offsets: dict[str, int]
    references: tuple[tuple[int, Field], ...]
    padding: int


class Table:
    """One table, read by field name."""

    __slots__ = ("buffer", "pos", "type")

    def __init__(self, buffer: FlatBuffer, kind: int, pos: int) -> None:
        self.buffer, self.type, self.pos = buffer, kind, pos

    @property
    def name(self) -> str:
        return self.buffer.schema.tables[self.type].name

    def get(self, name: str) -> Any:
        """Return the field's value: scalar, str, Table, Vector or None; a scalar's default."""
        field = self.buffer.schema.tables[self.type].by_name[name]
        offset = self.buffer.layout(self.type, self.pos).offsets.get(name)
        if offset is None:
            return field.default if field.kind == "scalar" else None
        at = self.pos + offset
        if field.kind == "scalar":
            return self.buffer.scalar(field.code, at)
        if field.kind == "union":
            return self.buffer.union_member(self, field, at)
        target = self.buffer.follow(at)
        if field.kind == "string":
            return self.buffer.string(target)
        if field.kind == "table":
            return Table(self.buffer, field.index, target)
        return Vector(self.buffer, field, target)

    def items(self, name: str) -> Vector | tuple[()]:
        """Return a vector field; ``()`` when it is absent."""
        return self.get(name) or ()


class Vector:
    """A vector of tables, strings or scalars; its elements are in ``[data, end)``."""

    __slots__ = ("_field", "buffer", "data", "end", "length")

    def __init__(self, buffer: FlatBuffer, field: Field, pos: int) -> None:
        self.buffer, self._field = buffer, field
        self.length, self.end = buffer.vector_extent(pos, field.size)
        self.data = pos + 4

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.length))

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.length:
            raise IndexError(index)
        at = self.data + index * self._field.size
        if self._field.kind == "vector of scalar":
            return self.buffer.scalar(self._field.code, at)
        target = self.buffer.follow(at)
        if self._field.kind == "vector of string":
            return self.buffer.string(target)
        return Table(self.buffer, self._field.index, target)

    def raw(self) -> memoryview:
        return self.buffer.view[self.data : self.end]


class FlatBuffer:
    """``view`` starts at the root offset; bytes from ``limit`` on do not belong to it."""

    def __init__(self, view: memoryview, schema: Schema, limit: int) -> None:
        self.view, self.schema, self.limit = view[:limit], schema, limit
        self.has_unknown_fields = False
        self.vtables: dict[int, tuple[int, int]] = {}  # position -> end, type of its first table
        self._layouts: dict[tuple[int, int], TableLayout] = {}

    def root(self) -> Table:
        return Table(self, self.schema.root, self.follow(0))

    # ---- reading, every position checked

    def u32(self, at: int) -> int:
        try:
            return int(_U32(self.view, at)[0])
        except struct.error:
            raise MalformedFile(f"an offset points to byte {at} of {self.limit}", at) from None

    def follow(self, at: int) -> int:
        """Return the position that the offset stored at ``at`` points to."""
        offset = self.u32(at)
        if offset == 0:
            raise MalformedFile("an offset points to itself", at)
        if at + offset > self.limit - 4:
            raise MalformedFile(f"an offset of {offset} leads out of the {self.limit} bytes", at)
        return at + offset

    def scalar(self, code: str, at: int) -> Any:
        try:
            return struct.unpack_from(f"<{code}", self.view, at)[0]
        except struct.error:
            raise MalformedFile("a value reaches past the end", at) from None

    def vector_extent(self, pos: int, size: int) -> tuple[int, int]:
        length = self.u32(pos)
        end = pos + 4 + length * size
        if end > self.limit:
            raise MalformedFile(
                f"a vector of {length} elements ends {end - self.limit} bytes past the end", pos
            )
        if size > 1 and length > MOST_PARTS:
            raise MalformedFile(f"a vector of {length:,} elements, more than {MOST_PARTS:,}", pos)
        return length, end

    def string(self, pos: int) -> str:
        _, end = self.vector_extent(pos, 1)
        return bytes(self.view[pos + 4 : end]).decode(errors="backslashreplace")

    def union_member(self, table: Table, field: Field, at: int) -> Table | None:
        number = table.get(f"{field.name}_type")
        if number == 0:
            return None
        kind = self.schema.unions[field.index].get(number)
        if kind is None:
            raise MalformedFile(f"{table.name}.{field.name} has an unknown type {number}", at)
        return Table(self, kind, self.follow(at))

    def layout(self, kind: int, pos: int) -> TableLayout:
        try:
            vtable = pos - int(_I32(self.view, pos)[0])
        except struct.error:
            raise MalformedFile("a table starts past the end", pos) from None
        layout = self._layouts.get((kind, vtable))
        if layout is None:
            layout = self._layouts[kind, vtable] = self._read_vtable(kind, vtable, pos)
        if pos + layout.size > self.limit:
            raise MalformedFile(f"a table of {layout.size} bytes reaches past the end", pos)
        return layout

    def _read_vtable(self, kind: int, vtable: int, pos: int) -> TableLayout:
        """Compute the size from the fields.

        The vtable's own size cannot be used: the Python builder, with which ExecuTorch writes, lets
        tables of different sizes share a vtable when their fields have the same offsets
        (``vtableEqual`` in flatbuffers/builder.py 25.2.10)."""
        described = self.schema.tables[kind]
        if not 0 <= vtable <= self.limit - 4:
            raise MalformedFile(f"a {described.name} has its vtable at {vtable}", pos)
        (vsize,) = _U16(self.view, vtable)
        if vsize < 4 or vsize % 2 or vtable + vsize > self.limit:
            raise MalformedFile(f"the vtable of a {described.name} has {vsize} bytes", vtable)
        offsets: dict[str, int] = {}
        references = []
        spans = [(0, 4)]
        slots = struct.iter_unpack("<H", self.view[vtable + 4 : vtable + vsize])
        for slot, (offset,) in enumerate(slots):
            field = described.fields[slot] if slot < len(described.fields) else None
            if offset == 0:
                continue
            if field is None:
                self.has_unknown_fields = True
                continue
            offsets[field.name] = offset
            spans.append((offset, offset + (4 if "vector" in field.kind else field.size)))
            if field.kind not in ("scalar", "struct"):
                references.append((offset, field))
        spans.sort()
        if any(low[1] > high[0] for low, high in pairwise(spans)):
            raise MalformedFile(f"the fields of a {described.name} overlap", vtable)
        self.vtables.setdefault(vtable, (vtable + vsize, kind))
        size = spans[-1][1]
        used = sum(end - start for start, end in spans)
        return TableLayout(size, offsets, tuple(references), size - used)
