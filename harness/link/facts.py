"""Tables of facts: YAML files beside the code that uses them, one checked row for each fact.

A file has lists of rows (usually one, ``rows``) and, where patterns have parts in common,
``fragments``: ``%name%`` in a pattern stands for the fragment of that name, and ``%name word%`` for
that fragment with ``word`` in place of ``NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from harness.core.verdict import Word

_Row = TypeVar("_Row")
_FRAGMENT = re.compile(r"%(?P<name>\w+)(?: (?P<word>\w+))?%")


def read_facts(row: type[_Row], file: Path, rows: str = "rows") -> tuple[_Row, ...]:
    """The list ``rows`` of a file, each item as a ``row``: a dataclass whose fields may be texts,
    words and compiled patterns.

    The files are the harness's own, so what is wrong with one is a defect: KeyError for a key that
    ``row`` does not have, ValueError for a word that there is not.
    """
    document = yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)
    fragments, types = document.get("fragments", {}), get_type_hints(row)
    return tuple(
        row(
            **{name: _typed(types[name], _expanded(text, fragments)) for name, text in each.items()}
        )
        for each in document[rows]
    )


def _typed(hint: Any, value: Any) -> Any:
    if get_origin(hint) is re.Pattern:
        return re.compile(value)
    for choice in get_args(hint) or (hint,):
        if isinstance(choice, type) and issubclass(choice, Word):
            return choice(value)
    return value


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
