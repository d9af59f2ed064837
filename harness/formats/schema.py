"""Reads the FlatBuffers schemas of ExecuTorch's file formats from its wheel. Imports no torch.

The wheel's ``flatc`` turns a ``.fbs`` into a binary schema once; the binary schema is cached and
read here with ``struct`` alone. Its layout is FlatBuffers' own ``reflection.fbs`` (version
24.3.25): the field numbers below are those of that file.

``conform`` checks whether a file written with one schema can be read with another. FlatBuffers
finds a field by its number, so a schema may grow: fields at the end of a table, members of a union
and values of an enum may be added, in either schema, and a name may change
(https://flatbuffers.dev/evolution). Any other difference makes the reader take one field for
another, without an error.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError
from harness.system.artifact_cache import cached, key_of
from harness.system.call import CallFailed, call
from harness.system.paths import cache_dir, executorch_package

PTE = "schema/program.fbs"
BPTE = "devtools/bundled_program/schema/bundled_program_schema.fbs"

# reflection.fbs, enum BaseType from 1 on: codes of ``struct`` for the values in the table or
# vector.
_CODES = dict(enumerate("B?bBhHiIqQfd", 1))
_STRING, _VECTOR, _OBJECT, _UNION = 13, 14, 15, 16


@dataclass(frozen=True)
class Field:
    """``kind`` is "scalar", "string", "table", "struct", "union", or "vector of" one of them.

    ``size``: bytes of a value in the table, or of an element in the vector. ``index``: of the
    table that it points to, or of the union's enum.
    """

    name: str
    slot: int
    kind: str
    size: int
    code: str = ""
    index: int = -1
    default: int | float = 0


@dataclass(frozen=True)
class TableType:
    name: str
    fields: tuple[Field | None, ...]  # by slot; None for a slot that is not described
    by_name: dict[str, Field]


@dataclass(frozen=True)
class Schema:
    identifier: str
    tables: tuple[TableType, ...]
    unions: tuple[dict[int, int], ...]  # by enum: member's number -> table
    enums: dict[str, dict[int, str]]
    root: int


def load_schema(file: str) -> Schema:
    """Load one of PTE, BPTE. Raises ToolMissing without ExecuTorch's wheel."""
    return read_schema(executorch_package() / file)


def read_schema(file: Path) -> Schema:
    """Read any ``.fbs``, which may include a ``scalar_type.fbs`` of its folder.

    Raises ToolMissing as above, and InfraError for a file that the wheel's flatc refuses."""
    return _Reflection(_binary_schema(file)).schema()


def _binary_schema(source: Path) -> bytes:
    flatc = executorch_package() / "data" / "bin" / "flatc"
    try:
        included = source.parent / "scalar_type.fbs"
        text = source.read_bytes() + (included.read_bytes() if included.is_file() else b"")
        key = key_of([hashlib.sha256(text).hexdigest(), flatc.stat().st_size])
        place = cache_dir("schemas") / f"{source.stem}-{key}"
        cached(place, key, lambda empty: _compile(flatc, source, empty))
        return (place / f"{source.stem}.bfbs").read_bytes()
    except OSError as error:
        raise InfraError(f"cannot prepare the schema {source}: {error}") from error


def _compile(flatc: Path, source: Path, folder: Path) -> None:
    try:
        call([flatc, "--binary", "--schema", "-o", folder, source], 60)
    except CallFailed as error:
        reason = error.output or error
        raise InfraError(f"flatc cannot compile {source}: {reason}") from error


class _Reflection:
    """Reads a binary schema.

    It is trusted: the wheel's own flatc wrote it, and the cache's seal shows that it is unchanged.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def schema(self) -> Schema:
        root = self._u32(0)
        objects, enums = self._tables(root, 0), self._tables(root, 1)
        return Schema(
            identifier=self._string(root, 2),
            tables=tuple(map(self._object, objects)),
            unions=tuple(map(self._members, enums)),
            enums={self._name(e): self._values(e) for e in enums},
            root=objects.index(self._table(root, 4)),
        )

    def _name(self, table: int) -> str:
        return self._string(table, 0).rsplit(".", 1)[-1]

    def _object(self, table: int) -> TableType:
        fields = {f.slot: f for f in map(self._field, self._tables(table, 1))}
        slots = tuple(fields.get(slot) for slot in range(max(fields, default=-1) + 1))
        return TableType(self._name(table), slots, {f.name: f for f in fields.values()})

    def _field(self, table: int) -> Field:
        name, slot = self._string(table, 0), self._scalar(table, 2, "H", 0)
        kind = self._table(table, 1)
        base, element = self._scalar(kind, 0, "b", 0), self._scalar(kind, 1, "b", 0)
        index = self._scalar(kind, 2, "i", -1)
        if base == _VECTOR:
            item_kind, size = self._kind_and_size(element, index)
            return Field(name, slot, f"vector of {item_kind}", size, _CODES.get(element, ""), index)
        code, (field_kind, size) = _CODES.get(base, ""), self._kind_and_size(base, index)
        # default_integer, or default_real
        default = self._scalar(table, *((5, "d") if code in ("f", "d") else (4, "q")), 0)
        return Field(name, slot, field_kind, size, code, index, default)

    def _kind_and_size(self, base: int, index: int) -> tuple[str, int]:
        if base in _CODES:
            return "scalar", struct.calcsize(f"<{_CODES[base]}")
        if base == _OBJECT:
            target = self._tables(self._u32(0), 0)[index]
            if self._scalar(target, 2, "B", 0):
                return "struct", self._scalar(target, 4, "i", 0)
        return {_STRING: "string", _OBJECT: "table", _UNION: "union"}[base], 4

    def _members(self, enum: int) -> dict[int, int]:
        members = {}
        for value in self._tables(enum, 1):
            kind = self._table(value, 3) if self._value_offset(value, 3) else 0
            if kind and self._scalar(kind, 0, "b", 0) == _OBJECT:
                members[self._scalar(value, 1, "q", 0)] = self._scalar(kind, 2, "i", -1)
        return members

    def _values(self, enum: int) -> dict[int, str]:
        return {self._scalar(v, 1, "q", 0): self._string(v, 0) for v in self._tables(enum, 1)}

    def _u32(self, at: int) -> int:
        return int(struct.unpack_from("<I", self._data, at)[0])

    def _value_offset(self, table: int, slot: int) -> int:
        """Return the offset of a field's value, 0 when it is absent."""
        vtable = table - int(struct.unpack_from("<i", self._data, table)[0])
        size = struct.unpack_from("<H", self._data, vtable)[0]
        if 4 + 2 * slot >= size:
            return 0
        offset = int(struct.unpack_from("<H", self._data, vtable + 4 + 2 * slot)[0])
        return table + offset if offset else 0

    def _scalar(self, table: int, slot: int, code: str, default: int) -> Any:
        at = self._value_offset(table, slot)
        return struct.unpack_from(f"<{code}", self._data, at)[0] if at else default

    def _table(self, table: int, slot: int) -> int:
        at = self._value_offset(table, slot)
        return at + self._u32(at)

    def _string(self, table: int, slot: int) -> str:
        at = self._value_offset(table, slot)
        if not at:
            return ""
        at += self._u32(at)
        return self._data[at + 4 : at + 4 + self._u32(at)].decode()

    def _tables(self, table: int, slot: int) -> list[int]:
        at = self._value_offset(table, slot)
        if not at:
            return []
        at += self._u32(at)
        slots = range(at + 4, at + 4 + 4 * self._u32(at), 4)
        return [slot + self._u32(slot) for slot in slots]


@dataclass(frozen=True)
class SchemaDifference:
    """A place where two schemas differ.

    ``where``: "Tensor.sizes", "enum ScalarType", "file_identifier"; ``writer`` and ``reader``: its
    text in the writer's and in the reader's schema."""

    where: str
    writer: str
    reader: str


@dataclass(frozen=True)
class Conformity:
    """The result of comparing two schemas.

    ``difference``: the first that misleads a reader. ``grown``: sentences about what only one
    schema has or what has another name; harmless unless a file uses it."""

    difference: SchemaDifference | None
    grown: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    """A field of a table, or a value of an enum. ``type`` must be the same in both schemas."""

    name: str
    type: str
    text: str


_Entries = Mapping[int, _Entry]  # by slot of a field, or number of a value
_ABSENT = _Entry("", "", "absent")


def conform(writer: Schema, reader: Schema) -> Conformity:
    """Compare two schemas, their tables and enums by name."""
    grown: list[str] = []
    for kind, ours, theirs in (
        ("file_identifier", writer.identifier, reader.identifier),
        ("root_type", writer.tables[writer.root].name, reader.tables[reader.root].name),
    ):
        if ours != theirs:
            return Conformity(SchemaDifference(kind, ours, theirs), ())
    written, read = _entries(writer), _entries(reader)
    for name in (name for name in written if name in read):
        if (difference := _difference(name, written[name], read[name], grown)) is not None:
            return Conformity(difference, tuple(grown))
    return Conformity(None, tuple(grown))


def _difference(
    of: str, written: _Entries, read: _Entries, grown: list[str]
) -> SchemaDifference | None:
    """Return the first that misleads a reader; append the others to ``grown``."""
    is_enum = of.startswith("enum ")
    names = {entry.name for entry in written.values()} & {entry.name for entry in read.values()}
    for number in sorted({*written, *read}):
        mine, yours = written.get(number, _ABSENT), read.get(number, _ABSENT)
        where = f"{of.removeprefix('enum ')}.{mine.name or yours.name}"
        only = "writer" if yours is _ABSENT else "reader" if mine is _ABSENT else ""
        in_the_middle = not is_enum and number < max(read if yours is _ABSENT else written)
        moved = mine.name != yours.name and not names.isdisjoint((mine.name, yours.name))
        if moved or (in_the_middle if only else mine.type != yours.type):
            return SchemaDifference(of if is_enum else where, mine.text, yours.text)
        if only:
            grown.append(f"only the {only} knows {where}")
        elif mine.name != yours.name:
            grown.append(f"{where} is called {yours.name} by the reader")
    return None


def _entries(schema: Schema) -> dict[str, _Entries]:
    """Those of each table and enum, by its name. Values of a union's enum have tables as types."""
    enums = list(schema.enums)
    tables: dict[str, _Entries] = {
        table.name: {f.slot: _described(f, schema, enums) for f in table.fields if f is not None}
        for table in schema.tables
    }
    for (name, values), members in zip(schema.enums.items(), schema.unions, strict=True):
        tables[f"enum {name}"] = {
            number: _Entry(value, value if number in members else "", f"{number} is {value}")
            for number, value in values.items()
        }
    return tables


def _described(field: Field, schema: Schema, enums: list[str]) -> _Entry:
    number = "float" if field.code in "fd" else "uint" if field.code.isupper() else "int"
    scalar = "bool" if field.code == "?" else f"{number}{8 * field.size}"
    kind = field.kind.replace("scalar", scalar + (" enum" if field.index >= 0 else ""))
    kind = kind.replace("struct", f"struct of {field.size} bytes")
    default = f", default {field.default}" if field.default else ""
    named = ""
    if field.index >= 0:
        is_table = field.kind.endswith(("table", "struct"))
        named = schema.tables[field.index].name if is_table else enums[field.index]
    text = f"field {field.slot}, {field.name}: {kind}{default}"
    return _Entry(field.name, f"{kind} {named}{default}", text)
