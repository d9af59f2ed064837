"""Where the history is kept: one interface, and SQLAlchemy behind it for SQLite and PostgreSQL.

Every row is a transaction of its own and is only ever added, so that a writer may be killed at any
moment and any number of them may write at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import sqlalchemy as sa

from harness.errors import InfraError
from harness.errors.verdict import Verdict
from harness.history.model import Night, Row, night_from, row_from
from harness.history.tables import endings, nights, rows

_SILENT = (Verdict.INFRA.value, Verdict.SKIPPED.value)
_LOOK = {
    True: "look whether its disk has room and its folder can be written",
    False: "look whether the database runs and takes connections",
}
_Insert = Callable[[sa.Table], Any]  # with PostgreSQL's "on conflict", which SQLite has, too
_AT_ONCE = 400  # rows in one statement; SQLite takes 32766 values (SQLITE_MAX_VARIABLE_NUMBER)


class HistoryUnreachable(InfraError):
    """``url``: of the database, without its password."""

    kind = "history_unreachable"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"the history at {url} cannot be used: {why}",
            hint=f"{_LOOK[url.startswith('sqlite')]}; --history or $HIL_HISTORY names another one",
        )


class History(Protocol):
    """What is kept of nights. Every method raises HistoryUnreachable."""

    def begin(self, night: Night) -> Night:
        """Keep a night, unless there is one of that id; the one that is kept."""

    def end(self, night: str, shard: int, time: str) -> None:
        """A shard of it has run all its cases. To say so twice does no harm."""

    def append(self, several: Sequence[Row]) -> int:
        """How many of the rows were new; one of an attempt that is there already is not."""

    def nights(self, *, suite: str | None = None, most: int | None = None) -> list[Night]:
        """The newest first."""

    def night(self, id: str) -> Night | None: ...

    def ended(self, night: Night) -> bool:
        """All its shards have."""

    def endings(self, night: str) -> dict[int, str]:
        """The shards that have, and when."""

    def rows(self, nights: Sequence[str]) -> list[Row]:
        """All tries of these nights, in the order in which they were written."""

    def of_case(self, case: str, *, most: int | None = None) -> list[Row]:
        """All tries, the oldest first; the newest ``most`` of them."""

    def settled_before(self, time: str) -> dict[str, Row]:
        """Of every case the last row before ``time`` that says something of the product: neither
        INFRA nor SKIPPED."""

    def cases(self) -> list[str]:
        """Every name in the history."""

    def every(self) -> Iterator[Row]:
        """In the order of time."""

    def prune(self, before: str) -> tuple[int, int]:
        """Remove what is older than that time; how many nights and rows that was."""


class Database:
    """A History in a database of SQLAlchemy. ``harness.history.database.open_history`` makes it."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        if engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert as into_postgresql  # and asyncio

            self._insert: _Insert = into_postgresql
        else:
            from sqlalchemy.dialects.sqlite import insert as into_sqlite

            self._insert = into_sqlite

    @property
    def url(self) -> str:
        return self._engine.url.render_as_string(hide_password=True)

    def begin(self, night: Night) -> Night:
        fields = {"id": night.id, "suite": night.suite, "began": night.began}
        new = self._insert(nights).values(**fields, body=night.to_fields())
        with self._transaction() as connection:
            connection.execute(new.on_conflict_do_nothing())
        return self.night(night.id) or night

    def end(self, night: str, shard: int, time: str) -> None:
        new = self._insert(endings).values(night=night, shard=shard, time=time)
        with self._transaction() as connection:
            connection.execute(new.on_conflict_do_nothing())

    def append(self, several: Sequence[Row]) -> int:
        new = 0
        for start in range(0, len(several), _AT_ONCE):
            values = [_columns(row) for row in several[start : start + _AT_ONCE]]
            statement = self._insert(rows).values(values).on_conflict_do_nothing()
            statement = statement.inline().execution_options(preserve_rowcount=True)
            with self._transaction() as connection:
                new += connection.execute(statement).rowcount
        return new

    def nights(self, *, suite: str | None = None, most: int | None = None) -> list[Night]:
        wanted = sa.select(nights.c.body).order_by(nights.c.began.desc(), nights.c.id.desc())
        if suite is not None:
            wanted = wanted.where(nights.c.suite == suite)
        with self._transaction() as connection:
            return [night_from(body) for body in connection.scalars(wanted.limit(most))]

    def night(self, id: str) -> Night | None:
        with self._transaction() as connection:
            body = connection.scalar(sa.select(nights.c.body).where(nights.c.id == id))
        return None if body is None else night_from(body)

    def ended(self, night: Night) -> bool:
        return len(self.endings(night.id)) >= night.shards

    def endings(self, night: str) -> dict[int, str]:
        wanted = sa.select(endings.c.shard, endings.c.time).where(endings.c.night == night)
        with self._transaction() as connection:
            return {row.shard: row.time for row in connection.execute(wanted)}

    def rows(self, nights: Sequence[str]) -> list[Row]:
        wanted = sa.select(rows.c.body).where(rows.c.night.in_(nights)).order_by(rows.c.id)
        return self._rows(wanted)

    def of_case(self, case: str, *, most: int | None = None) -> list[Row]:
        newest = (rows.c.time.desc(), rows.c.id.desc())
        wanted = sa.select(rows.c.body).where(rows.c.case == case).order_by(*newest)
        return self._rows(wanted.limit(most))[::-1]

    def settled_before(self, time: str) -> dict[str, Row]:
        told = sa.and_(rows.c.time < time, rows.c.verdict.not_in(_SILENT))
        last = (
            sa.select(rows.c.case, sa.func.max(rows.c.time).label("time"))
            .where(told)
            .group_by(rows.c.case)
            .subquery()
        )
        same = sa.and_(rows.c.case == last.c.case, rows.c.time == last.c.time)
        wanted = sa.select(rows.c.body).join(last, same).where(told).order_by(rows.c.attempt)
        return {row.case: row for row in self._rows(wanted)}

    def cases(self) -> list[str]:
        with self._transaction() as connection:
            wanted = sa.select(rows.c.case).distinct().order_by(rows.c.case)
            return list(connection.scalars(wanted))

    def every(self) -> Iterator[Row]:
        wanted = sa.select(rows.c.body).order_by(rows.c.time, rows.c.id)
        with self._transaction() as connection:
            found = connection.execution_options(yield_per=_AT_ONCE).scalars(wanted)
            yield from map(row_from, found)

    def prune(self, before: str) -> tuple[int, int]:
        old = sa.select(nights.c.id).where(nights.c.began < before)
        with self._transaction() as connection:
            gone = connection.execute(sa.delete(rows).where(rows.c.night.in_(old))).rowcount
            connection.execute(sa.delete(endings).where(endings.c.night.in_(old)))
            return connection.execute(
                sa.delete(nights).where(nights.c.began < before)
            ).rowcount, gone

    def close(self) -> None:
        self._engine.dispose()

    def _rows(self, wanted: sa.Select[tuple[object]]) -> list[Row]:
        with self._transaction() as connection:
            return [row_from(body) for body in connection.scalars(wanted)]  # type: ignore[arg-type]

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with told_as_unreachable(self.url), self._engine.begin() as connection:
            yield connection


@contextmanager
def told_as_unreachable(url: str) -> Iterator[None]:
    """Turn what a driver says of a database that is gone into one error of ours."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        raise HistoryUnreachable(url, _first_line(error)) from error
    except sa.exc.DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise HistoryUnreachable(url, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    said = str(getattr(error, "orig", None) or error)
    return next((line.strip() for line in said.splitlines() if line.strip()), said)


def _columns(row: Row) -> dict[str, object]:
    return {
        "night": row.night,
        "case": row.case,
        "attempt": row.attempt,
        "time": row.time,
        "target": row.target,
        "model": row.model,
        "source": row.source,
        "verdict": row.verdict.value,
        "cause": "" if row.cause is None else row.cause.kind,
        "seconds": row.seconds.get("total"),
        "body": row.to_fields(),
    }
