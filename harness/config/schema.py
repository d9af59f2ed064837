"""Checks the content of a file against frozen dataclasses, and says what is wrong where.

The class of a file derives from ``Data``. pydantic checks it by the annotations of its fields,
strictly: only a whole number becomes a ``float``, text a ``Path`` or ``date``, and a list a tuple.
``Annotated[…, Field(…)]`` bounds a value. ``__post_init__`` of a class raises ValueError for fields
that do not go together; it runs however the object is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_json

from harness.config.strict_yaml import Document, Location, Place
from harness.core.errors import TargetError
from harness.core.tables import read_table

_IN_KEY = "[key]"  # pydantic's, at the end of a location: a key is wrong, not its value
_WIDEST = 300  # characters of a message, which repeats what somebody wrote
_NAMES_THE_KEY = ("missing", "unexpected_keyword_argument")
Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class Data:
    """The base of the dataclasses that describe files."""

    __pydantic_config__: ClassVar = ConfigDict(
        strict=True, extra="forbid", arbitrary_types_allowed=True
    )


_Data = TypeVar("_Data", bound=Data)


def checked(kind: type[_Data], data: Mapping[str, Any]) -> _Data:
    """Return an object of that class from plain data. Raises one ValueError with all problems."""
    try:
        return _validated(kind, data)
    except ValidationError as error:
        raise ValueError("; ".join(map(_sentence, error.errors()))) from error


def checked_document(kind: type[_Data], document: Document, hint: str | None = None) -> _Data:
    """Return the same from a file.

    Raises TargetError with file and line of the first problem; its hint has the others, or is
    ``hint``."""
    try:
        return _validated(kind, document.data)
    except ValidationError as error:
        # If none of several types fits, there is a problem for each: the last one is reported.
        located = dict(_located(details, document) for details in error.errors())
        raise _explained(located, hint) from error


def _validated(kind: type[_Data], data: Mapping[str, Any]) -> _Data:
    # As JSON: of Python's objects pydantic, when it is strict, takes no dict for a dataclass.
    adapter: TypeAdapter[_Data] = _adapter(kind)  # type: ignore[arg-type]  # it has a hash
    return adapter.validate_json(to_json(data))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _explained(located: Mapping[Location, tuple[Place, str]], hint: str | None) -> TargetError:
    """Return the first of the problems, by line, in the words of the file."""
    # If the only item of a list is wrong, pydantic also says that the list is too short.
    around = {location[:end] for location in located for end in range(len(location))}
    ordered = sorted(
        (problem for location, problem in located.items() if location not in around),
        key=lambda problem: (str(problem[0].file), problem[0].line),
    )
    place, message = ordered[0]
    every = [f"{where.file}:{where.line}: {text}" for where, text in ordered]
    more = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return place.error(message + more, hint="\n".join(every[1:]) or hint, errors=every)


def _located(details: ErrorDetails, document: Document) -> tuple[Location, tuple[Place, str]]:
    location = details["loc"]
    if details["type"] not in _NAMES_THE_KEY:
        while location not in document.places:  # then comes the type that did not fit
            location = location[:-1]
    place = document.place(location)
    message = _sentence(details, location)
    of_value = details["type"] not in _NAMES_THE_KEY and details["loc"][-1:] != (_IN_KEY,)
    if of_value and place.text is not None:
        message = f"{message} (it is {place.text})"
    return location, (place, message if len(message) <= _WIDEST else f"{message[:_WIDEST]}...")


def _sentence(details: ErrorDetails, location: Location | None = None) -> str:
    """``location``: of the value, where it is known better than by pydantic."""
    kind = details["type"]
    shown = ".".join(str(part) for part in location or details["loc"] if part != _IN_KEY)
    message = details["msg"]
    if kind in (messages := read_table(__file__)):
        message = messages[kind].format(key=shown, **details.get("ctx", {}))
    if details["loc"][-1:] == (_IN_KEY,):
        message = f"this name is not allowed here ({message})"
    return message if kind in _NAMES_THE_KEY or not shown else f"{shown}: {message}"
