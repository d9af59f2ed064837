"""YAML as plain data that remembers the file and line of every key.

Stricter than YAML: keys are strings and occur once; there are no anchors, tags or directives;
numbers are finite; the top level is a mapping; nothing is nested deeper than 32 levels. Sequences
become tuples.

PyYAML parses; which text is a number, a truth value or null is decided here, by YAML 1.2's core
schema. ``no`` and ``1:30`` are therefore text; ``010``, ``1_000`` and an unquoted date are errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import NotThere, TargetError
from harness.system.files import read_regular

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_BYTES = 1 << 20
_MAX_DEPTH = 32

# YAML 1.2.2, section 10.3.2 (core schema), with what YAML 1.1 takes for a number besides.
_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS |= dict.fromkeys(("true", "True", "TRUE"), True)
_CONSTANTS |= dict.fromkeys(("false", "False", "FALSE"), False)
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LIKE_A_NUMBER = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|0b[01_]+|0x[0-9a-fA-F_]+"
    r"|\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt\s]|\Z)")

Location = tuple[str | int, ...]  # keys and indexes from the top level


@dataclass(frozen=True)
class Place:
    """Where a value is written, and how (``text``: a scalar as it stands in the file)."""

    file: Path
    line: int
    text: str | None = None

    def error(
        self, message: str, *, hint: str | None = None, errors: Sequence[str] | None = None
    ) -> TargetError:
        """``errors``: all errors of the file, this one first."""
        return TargetError(self.file, self.line, message, hint=hint, errors=errors)


@dataclass(frozen=True)
class Document:
    """The data of a file and the place of each value."""

    data: dict[str, Any]
    places: dict[Location, Place]

    def place(self, location: Location) -> Place:
        """Return the place of the value, or of the nearest enclosing one that is in the file."""
        while location not in self.places:
            location = location[:-1]
        return self.places[location]


def read(path: Path) -> Document:
    """Read a file. Raises NotThere, TargetError when it cannot be read, decoded or parsed."""
    try:
        raw = read_regular(path, _MAX_BYTES)
    except FileNotFoundError as error:
        raise NotThere(path) from error
    except OSError as error:
        raise Place(path, 1).error(f"cannot be read: {error.strerror}") from error
    parser = _Parser(path, raw)
    return Document(parser.document(), parser.places)


def merge(base: Document, child: Document) -> Document:
    """Lay the child over the base: mappings merge key by key, everything else is replaced."""
    places = dict(base.places)

    def merged(below: dict[str, Any], above: dict[str, Any], location: Location) -> dict[str, Any]:
        result = dict(below)
        for key, value in above.items():
            here = (*location, key)
            if isinstance(value, dict) and isinstance(below.get(key), dict):
                result[key] = merged(below[key], value, here)
            else:
                for stale in [p for p in places if p[: len(here)] == here]:
                    del places[stale]
                result[key] = value
        return result

    data = merged(base.data, child.data, ())
    return Document(data, {**places, **child.places})


class _Parser:
    """Builds the data of one file from PyYAML's events, and ``places`` with it."""

    def __init__(self, path: Path, raw: bytes) -> None:
        self.places: dict[Location, Place] = {}
        self._path = path
        try:
            self._text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = raw[: error.start].count(b"\n") + 1
            message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
            raise self._place(line).error(message) from error
        self._events = self._parsed()

    def document(self) -> dict[str, Any]:
        """Return the whole document. Raises TargetError."""
        if self._text.startswith("%") or "\n%" in self._text:
            line = self._text[: ("\n" + self._text).index("\n%")].count("\n") + 1
            raise self._place(line).error("directives (%) are not used here")
        next(self._events)  # the start of the stream
        document = next(self._events)
        root = None if isinstance(document, yaml.StreamEndEvent) else next(self._events)
        if not isinstance(root, yaml.MappingStartEvent):
            line = 1 if root is None else _line(root)
            raise self._place(line).error("the file must be a mapping of keys to values")
        self.places[()] = self._place(_line(root))
        data: dict[str, Any] = self._value(root, (), 0)
        next(self._events)  # the end of the document
        behind = next(self._events)
        if not isinstance(behind, yaml.StreamEndEvent):
            raise self._place(_line(behind)).error("not valid YAML: a second document")
        return data

    def _parsed(self) -> Iterator[Any]:
        try:
            yield from yaml.parse(self._text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._place(mark.line + 1 if mark else 1).error(
                f"not valid YAML: {error.problem}",
                hint="look for a bracket, a quote or an indentation at that line or above it",
            ) from error
        except yaml.reader.ReaderError as error:  # a character that YAML does not allow
            before = self._text.encode()[: error.position]  # libyaml counts bytes
            raise self._place(before.count(b"\n") + 1).error(
                f"not valid YAML: {error.reason}"
            ) from error

    def _value(self, event: Any, location: Location, depth: int) -> Any:
        """Return the value that begins with ``event``."""
        place = self._place(_line(event))
        if getattr(event, "anchor", None) is not None:
            raise place.error(
                f"anchors and aliases (&{event.anchor}) are not used here; use `extends`"
            )
        if event.tag is not None:
            raise place.error(f"tags ({event.tag}) are not used here")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, place)
        if depth >= _MAX_DEPTH:
            raise place.error(f"nested more than {_MAX_DEPTH} deep")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(location, depth)
        return self._sequence(location, depth)

    def _mapping(self, location: Location, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, location, depth)
            here = (*location, key)
            if key in data:
                first = self.places[here].line
                message = f"duplicate key {key!r}, first used in line {first}"
                raise self._place(_line(event)).error(message)
            value = next(self._events)
            self.places[here] = self._place(_line(event), value)
            data[key] = self._value(value, here, depth + 1)
        return data

    def _key(self, event: Any, location: Location, depth: int) -> str:
        key = None
        if isinstance(event, yaml.ScalarEvent):
            key = self._value(event, location, depth)
        if not isinstance(key, str):
            name = getattr(event, "value", "?")
            message = f"the key {name} is not a string; write it in quotes"
            raise self._place(_line(event)).error(message)
        return key

    def _sequence(self, location: Location, depth: int) -> tuple[Any, ...]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            here = (*location, len(items))
            self.places[here] = self._place(_line(event), event)
            items.append(self._value(event, here, depth + 1))
        return tuple(items)

    def _place(self, line: int, value: Any = None) -> Place:
        text = value.value if isinstance(value, yaml.ScalarEvent) else None
        return Place(self._path, line, text)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: yaml.ScalarEvent, place: Place) -> str | int | float | bool | None:
    text = str(event.value)
    if not event.implicit[0]:  # it is in quotes, or a block
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        if _DECIMAL.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    except ValueError:  # more digits than Python converts
        pass
    if _FLOAT.fullmatch(text) or _LIKE_A_NUMBER.fullmatch(text):
        raise place.error(f"{text!r} is not a number that is used here; write text in quotes")
    if _DATE.match(text) or text in ("<<", "="):
        raise place.error(f"{text!r} means something else in YAML 1.1; write it in quotes")
    return text
