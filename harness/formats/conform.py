"""Checks whether a file written with one schema can be read with another.

FlatBuffers finds a field by its number, so a schema may grow: fields at the end of a table, members
of a union and values of an enum may be added, in either schema, and a name may change
(https://flatbuffers.dev/evolution). With any other
difference the reader takes one field for another, without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from harness.formats.schema import Field, Schema

_TYPES = {
    "B": "uint8",
    "?": "bool",
    "b": "int8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "f": "float32",
    "d": "float64",
}


@dataclass(frozen=True)
class SchemaDifference:
    """``where``: "Tensor.sizes", "enum ScalarType", "file_identifier"; ``writer`` and ``reader``:
    its text in the writer's and in the reader's schema."""

    where: str
    writer: str
    reader: str


@dataclass(frozen=True)
class Conformity:
    """``difference``: the first that misleads a reader. ``grown``: sentences about what only one
    schema has or what has another name; harmless unless a file uses it."""

    difference: SchemaDifference | None
    grown: tuple[str, ...]


class _Differs(Exception):
    def __init__(self, where: str, writer: str, reader: str) -> None:
        self.difference = SchemaDifference(where, writer, reader)


def conform(writer: Schema, reader: Schema) -> Conformity:
    """Compares two schemas, starting at their root tables."""
    walk = _Comparison(writer, reader)
    try:
        if writer.identifier != reader.identifier:
            raise _Differs("file_identifier", writer.identifier, reader.identifier)
        walk.table(writer.root, reader.root)
    except _Differs as error:
        return Conformity(error.difference, tuple(walk.grown))
    return Conformity(None, tuple(walk.grown))


class _Comparison:
    """Walks through both schemas at once, from the root table."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        self.writer, self.reader = writer, reader
        self.grown: list[str] = []
        self._seen: set[tuple[str, int, int]] = set()

    def table(self, ours: int, theirs: int, *, struct: bool = False) -> None:
        if ("table", ours, theirs) in self._seen:
            return
        self._seen.add(("table", ours, theirs))
        a, b = self.writer.tables[ours], self.reader.tables[theirs]
        for mine, yours in zip_longest(a.fields, b.fields):
            field = mine or yours
            if field is None:  # neither describes this slot
                continue
            where = f"{a.name}.{field.name}"
            if mine is None or yours is None:
                end = len(a.fields if mine is None else b.fields)
                if struct or field.slot < end:
                    raise _Differs(where, _description(mine), _description(yours))
                self._only(where, in_writer=yours is None)
                continue
            self._field(where, mine, yours, a.by_name, b.by_name)

    def _field(
        self,
        where: str,
        mine: Field,
        yours: Field,
        ours: Mapping[str, Field],
        theirs: Mapping[str, Field],
    ) -> None:
        moved = mine.name != yours.name and (mine.name in theirs or yours.name in ours)
        if moved or _shape(mine) != _shape(yours):
            raise _Differs(where, _description(mine), _description(yours))
        if mine.name != yours.name:
            self.grown.append(f"{where} is called {yours.name} by the reader")
        if mine.index < 0 or yours.index < 0:
            if mine.index != yours.index:
                raise _Differs(where, _description(mine), _description(yours))
        elif mine.kind.endswith(("table", "struct")):
            self.table(mine.index, yours.index, struct=mine.kind.endswith("struct"))
        else:
            self._enum(mine.index, yours.index)
            if mine.kind.endswith("union"):
                self._members(mine.index, yours.index)

    def _enum(self, ours: int, theirs: int) -> None:
        """Compares two enums; the kinds of a union are one, too."""
        if ("enum", ours, theirs) in self._seen:
            return
        self._seen.add(("enum", ours, theirs))
        name, a = list(self.writer.enums.items())[ours]
        b = list(self.reader.enums.values())[theirs]
        for number in sorted({*a, *b}):
            mine, yours = a.get(number), b.get(number)
            if mine is None or yours is None:
                value = mine or yours
                if numbers := [n for n, v in (b if mine else a).items() if v == value]:
                    with_value, without = f"{number} is {value}", f"{numbers[0]} is {value}"
                    pair = (with_value, without) if mine else (without, with_value)
                    raise _Differs(f"enum {name}", *pair)
                self._only(f"{name}.{value}", in_writer=yours is None)
            elif mine != yours:
                if mine in b.values() or yours in a.values():
                    raise _Differs(f"enum {name}", f"{number} is {mine}", f"{number} is {yours}")
                self.grown.append(f"{name}.{mine} is called {yours} by the reader")

    def _members(self, ours: int, theirs: int) -> None:
        a, b = self.writer.unions[ours], self.reader.unions[theirs]
        for number in sorted(a.keys() & b.keys()):
            self.table(a[number], b[number])

    def _only(self, name: str, *, in_writer: bool) -> None:
        self.grown.append(f"only the {'writer' if in_writer else 'reader'} knows {name}")


def _shape(field: Field) -> tuple[object, ...]:
    return field.kind, field.size, field.code, field.default


def _description(field: Field | None) -> str:
    if field is None:
        return "absent"
    scalar = _TYPES.get(field.code, "scalar") + (" enum" if field.index >= 0 else "")
    kind = field.kind.replace("scalar", scalar)
    kind = kind.replace("struct", f"struct of {field.size} bytes")
    default = f", default {field.default}" if field.default else ""
    return f"field {field.slot}, {field.name}: {kind}{default}"
