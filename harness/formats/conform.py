"""Checks whether a file written with one schema can be read with another.

FlatBuffers finds a field by its number, so a schema may grow: fields at the end of a table, members
of a union and values of an enum may be added, in either schema, and a name may change
(https://flatbuffers.dev/evolution). Any other difference makes the reader take one field for
another, without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.formats.schema import Field, Schema


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
    scalar = _type_name(field) + (" enum" if field.index >= 0 else "")
    kind = field.kind.replace("scalar", scalar)
    kind = kind.replace("struct", f"struct of {field.size} bytes")
    default = f", default {field.default}" if field.default else ""
    named = ""
    if field.index >= 0:
        is_table = field.kind.endswith(("table", "struct"))
        named = schema.tables[field.index].name if is_table else enums[field.index]
    text = f"field {field.slot}, {field.name}: {kind}{default}"
    return _Entry(field.name, f"{kind} {named}{default}", text)


def _type_name(field: Field) -> str:
    """ "bool", "uint8", "float64": of a scalar, or of a vector's."""
    if field.code == "?":
        return "bool"
    kind = "float" if field.code in "fd" else "uint" if field.code.isupper() else "int"
    return f"{kind}{8 * field.size}"
