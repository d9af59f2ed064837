"""The content of a file against the classes of ``harness.target``: what is wrong, and where.

pydantic does it, in the strict way it reads JSON: no value is made to fit, a list is a tuple.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from pydantic import ValidationError as ValidationError
from pydantic_core import ErrorDetails

from harness.target.data import Data, plain

_Data = TypeVar("_Data", bound=Data)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked(kind: type[_Data], said: Mapping[str, Any]) -> _Data:
    """An object of that class from plain data. Raises ValidationError."""
    return checked_json(kind, json.dumps(plain(said)))


def checked_json(kind: type[_Data], said: str | bytes) -> _Data:
    """The same from the text of JSON. Raises ValidationError."""
    wanted: Any = kind
    return cast(_Data, _adapter(wanted).validate_json(said))


def errors_of(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False)


def is_unknown_key(item: ErrorDetails) -> bool:
    return item["type"] in ("unexpected_keyword_argument", "extra_forbidden")
