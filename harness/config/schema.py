"""Checks the content of a file against frozen dataclasses, and says what is wrong where.

A class behind a YAML file derives from ``Data``. The annotation of a field is its type, strictly:
only a whole number is converted to ``float``, text to ``Path`` or ``date``, and a list to a tuple.
``Annotated[…, Rule(…)]`` bounds the value. A method ``_check_…`` of the class raises ValueError for
fields that do not go together; it runs however the object is made.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as type_hints

from harness.config.strict_yaml import Document, Location
from harness.core.errors import TargetError

IN_KEY = "[key]"  # at the end of a location: the key of a mapping is wrong, not its value
_SCALARS = {
    str: "a string is wanted, in quotes",
    bool: "true or false is wanted",
    int: "a whole number is wanted",
    float: "a number is wanted",
    date: 'a day is wanted, as "2027-01-31"',
    Path: "a path is wanted",
}


@dataclass(frozen=True)
class Rule:
    """Bounds of a value, in an Annotated. ``after`` takes the value and returns the one to use, or
    raises ValueError."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    after: Callable[[Any], Any] | None = None

    def apply(self, value: Any) -> Any:
        """Raises ValueError."""
        if self.gt is not None and not value > self.gt:
            raise ValueError(f"it must be greater than {self.gt:g}")
        if self.ge is not None and not value >= self.ge:
            raise ValueError(f"it must be at least {self.ge:g}")
        if self.lt is not None and not value < self.lt:
            raise ValueError(f"it must be less than {self.lt:g}")
        if self.le is not None and not value <= self.le:
            raise ValueError(f"it must be at most {self.le:g}")
        if self.min_length is not None and len(value) < self.min_length:
            unit = "character" if isinstance(value, str) else "item"
            raise ValueError(f"at least {self.min_length} {unit} is wanted")
        if self.pattern is not None and re.search(self.pattern, value) is None:
            raise ValueError(f"it must match {self.pattern}")
        return value if self.after is None else self.after(value)


Text = Annotated[str, Rule(min_length=1, pattern=r"^[^\x00-\x1f]+\Z")]


class Data:
    """The base of the dataclasses behind YAML files."""

    _checks: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name in vars(cls) if name.startswith("_check_"))
        cls._checks = (*cls._checks, *own)

    def __post_init__(self) -> None:
        for name in self._checks:
            getattr(self, name)()


@dataclass(frozen=True)
class Problem:
    """``of_key``: a key is unknown or missing, and the message names it."""

    location: Location
    message: str
    of_key: bool = False

    def __str__(self) -> str:
        shown = "" if self.of_key else _dotted(self.location)
        return f"{shown}: {self.message}" if shown else self.message


class ValidationError(ValueError):
    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


_Kind = TypeVar("_Kind")
_Data = TypeVar("_Data", bound=Data)


def checked(kind: type[_Kind], data: Mapping[str, Any]) -> _Kind:
    """An object of that dataclass from plain data. Raises ValidationError."""
    problems: list[Problem] = []
    value = _object(kind, data, (), problems)
    if problems:
        raise ValidationError(problems)
    assert isinstance(value, kind)
    return value


def checked_document(kind: type[_Data], document: Document, hint: str | None = None) -> _Data:
    """The same from a file. Raises TargetError with file and line of the first problem; its hint
    has the others, or is ``hint``."""
    try:
        return checked(kind, document.data)
    except ValidationError as error:
        raise _explained(error, document, hint) from error


def _explained(error: ValidationError, document: Document, hint: str | None) -> TargetError:
    """The first of the problems, by line, in the words of the file."""
    located = [(document.place(p.location), _sentence(p, document)) for p in error.problems]
    located.sort(key=lambda pair: (str(pair[0].file), pair[0].line))
    place, message = located[0]
    every = [f"{where.file}:{where.line}: {text}" for where, text in located]
    more = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return place.error(message + more, hint="\n".join(every[1:]) or hint, errors=every)


def _sentence(problem: Problem, document: Document) -> str:
    location = problem.location
    if location[-1:] == (IN_KEY,):
        return f"{_dotted(location)}: this name is not allowed here ({problem.message})"
    known = not problem.of_key and location in document.places
    text = document.places[location].text if known else None
    return str(problem) if text is None else f"{problem} (it is {text})"


_Problems = list[Problem]


@cache
def _annotations(kind: Any) -> Mapping[str, Any]:
    return type_hints(kind, include_extras=True)


def _object(kind: Any, data: Any, location: Location, problems: _Problems) -> Any:
    """An object of ``kind``; None where problems were found."""
    if isinstance(data, kind):
        return data
    if not isinstance(data, Mapping):
        return _wrong(location, "a mapping is wanted", problems)
    before = len(problems)
    values: dict[str, Any] = {}
    # A key that is a word of Python is a field with an underscore behind it: `from`, `from_`.
    known = {item.name.removesuffix("_"): item for item in fields(kind)}
    for key in data:
        if key not in known:
            here = (*location, key)
            _wrong(here, f"unknown key {_dotted(here)!r}", problems, of_key=True)
    for key, item in known.items():
        here = (*location, key)
        if key in data:
            wanted = _annotations(kind)[item.name]
            values[item.name] = _value(wanted, data[key], here, problems)
        elif item.default is MISSING and item.default_factory is MISSING:
            _wrong(here, f"required key {_dotted(here)!r} is missing", problems, of_key=True)
    if len(problems) > before:
        return None
    try:
        return kind(**values)
    except ValueError as error:
        return _wrong(location, str(error), problems)


def _value(wanted: Any, value: Any, location: Location, problems: _Problems) -> Any:
    """``value`` as the annotation ``wanted`` has it; None where problems were found."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return value
    if origin is Annotated:
        return _ruled(arguments[0], arguments[1:], value, location, problems)
    if origin in (Union, types.UnionType):
        return _union(arguments, value, location, problems)
    if origin is Literal:
        return _choice(arguments, value, location, problems)
    if origin is tuple:
        return _items(arguments[0], value, location, problems)
    if origin in (dict, Mapping):
        return _entries(arguments[0], arguments[1], value, location, problems)
    if is_dataclass(wanted):
        return _object(wanted, value, location, problems)
    if issubclass(wanted, Enum):
        words = tuple(member.value for member in wanted)
        chosen = _choice(words, value, location, problems)
        return None if chosen is None else wanted(chosen)
    return _scalar(wanted, value, location, problems)


def _ruled(
    wanted: Any, rules: Sequence[Rule], value: Any, location: Location, problems: _Problems
) -> Any:
    before = len(problems)
    value = _value(wanted, value, location, problems)
    if len(problems) > before:
        return None
    try:
        for rule in rules:
            value = rule.apply(value)
    except ValueError as error:
        return _wrong(location, str(error), problems)
    return value


def _union(members: Sequence[Any], value: Any, location: Location, problems: _Problems) -> Any:
    if value is None and type(None) in members:
        return None
    attempts: list[_Problems] = []
    for member in members:
        if member is type(None):
            continue
        attempt: _Problems = []
        result = _value(member, value, location, attempt)
        if not attempt:
            return result
        attempts.append(attempt)
    # The member that got furthest into the value is the one that was meant.
    problems += max(attempts, key=lambda found: max(len(p.location) for p in found))
    return None


def _choice(words: Sequence[Any], value: Any, location: Location, problems: _Problems) -> Any:
    if isinstance(value, str) and value in words:
        return value
    *others, last = map(repr, words)
    listed = f"{', '.join(others)} or {last}" if others else last
    return _wrong(location, f"{listed} is wanted", problems)


def _items(wanted: Any, value: Any, location: Location, problems: _Problems) -> Any:
    if not isinstance(value, (tuple, list)):
        return _wrong(location, "a list is wanted", problems)
    return tuple(
        _value(wanted, item, (*location, index), problems) for index, item in enumerate(value)
    )


def _entries(
    of_key: Any, of_value: Any, value: Any, location: Location, problems: _Problems
) -> Any:
    if not isinstance(value, Mapping):
        return _wrong(location, "a mapping is wanted", problems)
    return {
        _value(of_key, key, (*location, key, IN_KEY), problems): _value(
            of_value, item, (*location, key), problems
        )
        for key, item in value.items()
    }


def _scalar(wanted: Any, value: Any, location: Location, problems: _Problems) -> Any:
    if wanted is float and type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if wanted is Path and isinstance(value, (str, Path)):
        return Path(value)
    if wanted is date and isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if type(value) is wanted:
        return value
    return _wrong(location, _SCALARS[wanted], problems)


def _wrong(location: Location, message: str, problems: _Problems, *, of_key: bool = False) -> None:
    problems.append(Problem(location, message, of_key))


def _dotted(location: Location) -> str:
    return ".".join(str(part) for part in location if part != IN_KEY)
