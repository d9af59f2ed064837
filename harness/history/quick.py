"""The runs of one case, asked of the database's driver itself: to import SQLAlchemy takes several
times as long as the answer, which people wait for.

It answers where everything is as usual, and says nothing where it is not: then the history itself
is opened, which migrates, delivers what waits, and tells what is wrong.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from harness.history.model import Row, row_from
from harness.history.place import HEAD, spool_dir
from harness.system.json_file import MALFORMED

_SQLITE, _POSTGRESQL = "sqlite:///", "postgresql://"
_VERSION = "SELECT version_num FROM alembic_version"
_RUNS = 'SELECT body FROM rows WHERE "case" = {} ORDER BY time DESC, id DESC LIMIT {}'
_ALL = 1 << 31

_Ask = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]


def runs_of(url: str, case: str, most: int | None = None) -> list[Row] | None:
    """As ``History.of_case`` gives them. None where that has to be asked."""
    if any(spool_dir().glob("*.jsonl")):
        return None
    try:
        if url.startswith(_SQLITE):
            return _of_sqlite(url.removeprefix(_SQLITE), case, most)
        if url.startswith(_POSTGRESQL):
            return _of_postgresql(url, case, most)
    except MALFORMED:  # a row that another version wrote
        return None
    return None


def _of_sqlite(file: str, case: str, most: int | None) -> list[Row] | None:
    if not file or "?" in file:
        return None
    try:
        there = sqlite3.connect(f"{Path(file).absolute().as_uri()}?mode=ro", uri=True)
        with closing(there):
            return _asked(lambda sql, said: there.execute(sql, said).fetchall(), "?", case, most)
    except sqlite3.Error:
        return None


def _of_postgresql(url: str, case: str, most: int | None) -> list[Row] | None:
    try:
        import psycopg  # not for a history in a file
    except ImportError:
        return None
    try:
        with psycopg.connect(url, connect_timeout=10) as there:
            return _asked(
                lambda sql, said: there.execute(sql.encode(), said).fetchall(), "%s", case, most
            )
    except psycopg.Error:
        return None


def _asked(ask: _Ask, mark: str, case: str, most: int | None) -> list[Row] | None:
    if ask(_VERSION, ()) != [(HEAD,)]:
        return None
    found = ask(_RUNS.format(mark, mark), (case, _ALL if most is None else most))
    bodies = (json.loads(body) if isinstance(body, str) else body for (body,) in found)
    return [row_from(body) for body in bodies][::-1]
