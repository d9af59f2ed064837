"""YAML as plain data that remembers the file and line of every key.

Stricter than YAML: keys are strings and occur once, there are no anchors, no tags and no
directives, numbers are finite, nothing is nested deeper than anybody writes by hand, and the top
level is a mapping. Sequences become tuples.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness.errors import TargetError
from harness.system.files import read_regular

_MOST_BYTES = 1 << 20
_DEEPEST = 32

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
        """``errors``: all that are wrong in the file, this one first."""
        return TargetError(self.file, self.line, message, hint=hint, errors=errors)


@dataclass(frozen=True)
class Document:
    """``sha256``: of the bytes of the file that was read; "" for what was put together."""

    data: dict[str, Any]
    places: dict[Location, Place]
    sha256: str = ""

    def place(self, location: Location) -> Place:
        """The place of the value, or of the nearest enclosing one that is in the file."""
        while location not in self.places:
            location = location[:-1]
        return self.places[location]


def read(path: Path) -> Document:
    """Raises TargetError when the file cannot be read, decoded or parsed."""
    raw = _bytes(path)
    node = _compose(path, _text(path, raw))
    if not isinstance(node, MappingNode):
        line = node.start_mark.line + 1 if node is not None else 1
        raise Place(path, line).error("the file must be a mapping of keys to values")
    places: dict[Location, Place] = {(): Place(path, node.start_mark.line + 1)}
    data = _mapping(node, path, (), places)
    return Document(data, places, hashlib.sha256(raw).hexdigest())


def merge(base: Document, child: Document) -> Document:
    """The child laid over the base: mappings merge key by key, everything else is replaced."""
    places = dict(base.places)

    def lay(under: dict[str, Any], over: dict[str, Any], at: Location) -> dict[str, Any]:
        merged = dict(under)
        for key, value in over.items():
            here = (*at, key)
            if isinstance(value, dict) and isinstance(under.get(key), dict):
                merged[key] = lay(under[key], value, here)
            else:
                for stale in [p for p in places if p[: len(here)] == here]:
                    del places[stale]
                merged[key] = value
        return merged

    data = lay(base.data, child.data, ())
    return Document(data, {**places, **child.places})


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise Place(path, 1).error(f"cannot be read: {error.strerror}") from error


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise Place(path, line).error(f"byte 0x{raw[error.start]:02x} is not UTF-8") from error


class _TooDeep(Exception):
    """``line`` from 0."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(line)


class _Bounded(Composer):
    """Goes no deeper than it may. Python's stack would end deep YAML otherwise, and the scanner
    takes the square of the depth."""

    nested = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        if self.nested > _DEEPEST:
            raise _TooDeep(self.parser.peek_event().start_mark.line)
        self.nested += 1
        try:
            return super().compose_node(parent, index)  # type: ignore[no-any-return]
        finally:
            self.nested -= 1


def _compose(path: Path, text: str) -> Node | None:
    reader = YAML(typ="safe", pure=True)
    reader.Composer = _Bounded
    if text.startswith("%") or "\n%" in text:
        line = text[: ("\n" + text).index("\n%")].count("\n") + 1
        raise Place(path, line).error("directives (%) are not used here")
    try:
        return reader.compose(text)  # type: ignore[no-any-return]
    except _TooDeep as error:
        raise Place(path, error.line + 1).error(
            f"nested more than {_DEEPEST} deep, which nothing here is"
        ) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise Place(path, line).error(
            f"not valid YAML: {error.problem}",
            hint="look for a bracket, a quote or an indentation at that line or above it",
        ) from error
    except YAMLError as error:  # a character that YAML does not allow
        line = text[: getattr(error, "position", 0)].count("\n") + 1
        reason = getattr(error, "reason", "unreadable")
        raise Place(path, line).error(f"not valid YAML: {reason}") from error
    except (ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        # ruamel.yaml 0.18 has such ends for some of what is not YAML
        raise Place(path, 1).error(f"not valid YAML: {error!r}") from error


def _mapping(
    node: MappingNode, path: Path, at: Location, places: dict[Location, Place]
) -> dict[str, Any]:
    _refuse_anchor(node, path)
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode) or not str(key_node.tag).endswith(":str"):
            name = getattr(key_node, "value", "?")
            raise Place(path, line).error(f"the key {name!s} is not a string; write it in quotes")
        key = str(key_node.value)
        if key in data:
            first = places[(*at, key)].line
            raise Place(path, line).error(f"duplicate key {key!r}, first used in line {first}")
        text = str(value_node.value) if isinstance(value_node, ScalarNode) else None
        places[(*at, key)] = Place(path, line, text)
        data[key] = _value(value_node, path, (*at, key), places)
    return data


def _value(node: Node, path: Path, at: Location, places: dict[Location, Place]) -> Any:
    if isinstance(node, MappingNode):
        return _mapping(node, path, at, places)
    _refuse_anchor(node, path)
    if isinstance(node, SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            text = str(item.value) if isinstance(item, ScalarNode) else None
            places[(*at, index)] = Place(path, item.start_mark.line + 1, text)
            items.append(_value(item, path, (*at, index), places))
        return tuple(items)
    return _scalar(node, Place(path, node.start_mark.line + 1))


def _scalar(node: Node, place: Place) -> str | int | float | bool | None:
    text = str(node.value)
    kind = str(node.tag).rpartition(":")[2]
    try:
        if kind == "str":
            return text
        if kind == "int":
            return int(text.replace("_", ""), 0 if text.lstrip("+-")[:2] in ("0x", "0o") else 10)
        if kind == "float":
            return _finite(float(text.replace("_", "")))
    except ValueError as error:
        raise place.error(f"{text!r} is not a number that is used here") from error
    if kind == "bool":
        return text.lower() == "true"
    if kind == "null":
        return None
    raise place.error(f"{text!r} is a YAML {kind}, which is not used here; write it in quotes")


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(number)
    return number


def _refuse_anchor(node: Node, path: Path) -> None:
    if node.anchor is not None:
        raise Place(path, node.start_mark.line + 1).error(
            f"anchors and aliases (&{node.anchor}) are not used here; use `extends`"
        )
