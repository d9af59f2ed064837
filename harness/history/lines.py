"""The history as JSON lines: to carry it elsewhere, to keep it, and to wait for a database.

One object a line, with one key that says what it is: ``{"night": …}``, ``{"row": …}``,
``{"ending": {"night": …, "shard": …, "time": …}}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.history.model import SCHEMA, Night, Row, night_from, row_from
from harness.system.json_file import MALFORMED, parsed

if TYPE_CHECKING:
    from pydantic import TypeAdapter  # few verbs read lines

    from harness.history.store import History  # SQLAlchemy

_AT_ONCE = 200


@dataclass(frozen=True)
class Ending:
    """A shard of a night has run all its cases."""

    night: str
    shard: int
    time: str


Item = Night | Row | Ending


class BadLine(UsageError):
    """``line`` of a file, from 1, that is none of ours."""

    kind = "bad_history_line"

    def __init__(self, path: Path, line: int, why: str) -> None:
        self.line = line
        super().__init__(
            f"{path}:{line}: {why}", hint="`hil history export` writes such files", path=path
        )


def line_of(item: Item) -> str:
    """With the newline."""
    kind, fields = _KINDS[type(item)], _fields(item)
    return json.dumps({kind: fields}, separators=(",", ":"), sort_keys=True) + "\n"


_KINDS: dict[type, str] = {Night: "night", Row: "row", Ending: "ending"}


def _fields(item: Item) -> dict[str, Any]:
    return dict(vars(item)) if isinstance(item, Ending) else item.to_fields()


def read_lines(path: Path) -> Iterator[Item]:
    """Raises BadLine, and UsageError for a file that cannot be read. A last line without an end,
    which a killed writer leaves, is not one."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith("\n"):
                    return
                yield _item(path, number, text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", path=path) from error


def _item(path: Path, number: int, text: str) -> Item:
    try:
        said = parsed(text)
        ((kind, fields),) = said.items()
        if kind != "ending" and fields.get("schema") != SCHEMA:
            raise ValueError(f"it is of schema {fields.get('schema')}, and this reads {SCHEMA}")
        if kind == "row":
            return _row_check().validate_python(row_from(fields).to_fields())
        if kind == "night":
            return _night_check().validate_python(night_from(fields).to_fields())
        if kind == "ending":
            return Ending(str(fields["night"]), int(fields["shard"]), str(fields["time"]))
        raise ValueError(f"{kind!r} is neither night nor row nor ending")
    except MALFORMED as error:
        raise BadLine(path, number, f"is no line of a history: {error}") from error


@cache
def _row_check() -> TypeAdapter[Row]:
    from pydantic import TypeAdapter

    return TypeAdapter(Row)


@cache
def _night_check() -> TypeAdapter[Night]:
    from pydantic import TypeAdapter

    return TypeAdapter(Night)


def everything(history: History) -> Iterator[Item]:
    """Nights first, the oldest of them first, then all rows, then what ended."""
    nights = history.nights()[::-1]
    yield from nights
    yield from history.every()
    yield from _endings(history, nights)


def of_night(history: History, night: Night) -> Iterator[Item]:
    """The same of one night."""
    yield night
    yield from history.rows([night.id])
    yield from _endings(history, [night])


def _endings(history: History, nights: Iterable[Night]) -> Iterator[Ending]:
    for night in nights:
        for shard, time in sorted(history.endings(night.id).items()):
            yield Ending(night.id, shard, time)


@dataclass(frozen=True)
class Brought:
    """How much of a file was new, and how much was there already."""

    nights: int = 0
    rows: int = 0
    known: int = 0


def bring(history: History, items: Iterable[Item]) -> Brought:
    """Add what is not there yet. Raises HistoryUnreachable; to do it again does no harm."""
    done, waiting = Brought(), list[Row]()
    for item in items:
        if isinstance(item, Row):
            waiting.append(item)
            if len(waiting) >= _AT_ONCE:
                done, waiting = _added(history, waiting, done), []
        elif isinstance(item, Night):
            new = history.night(item.id) is None
            history.begin(item)
            done = replace(done, nights=done.nights + new, known=done.known + (not new))
        else:
            history.end(item.night, item.shard, item.time)
    return _added(history, waiting, done)


def _added(history: History, rows: list[Row], done: Brought) -> Brought:
    new = history.append(rows)
    return replace(done, rows=done.rows + new, known=done.known + len(rows) - new)
