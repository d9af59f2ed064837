"""Tables of facts: YAML files next to the code that uses them, one checked row for each fact.

A file has lists of rows (usually one, ``rows``) and, where patterns have parts in common,
``fragments``: ``%name%`` in a pattern stands for the fragment of that name, and ``%name word%`` for
that fragment with ``word`` instead of ``NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from harness.config.schema import Data, checked

_Row = TypeVar("_Row", bound=Data)
_FRAGMENT = re.compile(r"%(?P<name>\w+)(?: (?P<word>\w+))?%")


def read_facts(row: type[_Row], file: Path, rows: str = "rows") -> tuple[_Row, ...]:
    """The list ``rows`` of a file, each item as a ``row``. The files are the harness's own, so what
    is wrong with one is a defect: ValueError. Each is read once."""
    return _read(row, file, rows)  # type: ignore[arg-type]  # every class has a hash


@cache
def _read(row: Any, file: Path, rows: str) -> tuple[Any, ...]:
    document = yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)
    fragments = document.get("fragments", {})
    return tuple(checked(row, _expanded(each, fragments)) for each in document[rows])


def _expanded(value: Any, fragments: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, fragments) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_expanded(item, fragments) for item in value)
    if not isinstance(value, str) or not fragments:
        return value

    def part(match: re.Match[str]) -> str:
        fragment = fragments[match["name"]].replace("NAME", match["word"] or "NAME")
        return str(_expanded(fragment, fragments))

    return _FRAGMENT.sub(part, value)
