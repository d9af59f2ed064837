"""A history of nights in a database: SQLAlchemy's, of SQLite or PostgreSQL.

Rows are never updated: they are inserted, some hundred in a transaction, and deleted by ``prune``
alone, so that a writer may be killed at any moment and any number of them may write at once.
``body`` of a table is all of a row or night as JSON; the other columns repeat what is searched for,
so that anybody's SQL finds it, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter

from harness.core.errors import InfraError, UsageError
from harness.nightly.history.nights import Night, Planned, Row, last_tries

_Item = TypeVar("_Item", Night, Row)
TYPES: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in (Night, Row)}
metadata = sa.MetaData()

nights = sa.Table(
    "nights",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("branch", sa.String, nullable=False),
    sa.Column("began", sa.String, nullable=False, index=True),  # ISO 8601, UTC: sorts as text
    sa.Column("body", sa.JSON, nullable=False),
)

culprits = sa.Table(
    "culprits",
    metadata,
    sa.Column("night", sa.String, primary_key=True),
    sa.Column("case", sa.String, primary_key=True),
    sa.Column("text", sa.String, nullable=False),
)

# The columns of a row that queries search, in addition to its body.
_TEXTS: dict[str, Callable[[Row], str]] = {
    **{n: attrgetter(n) for n in ("night", "case", "time", "target", "model", "source", "suite")},
    "verdict": attrgetter("verdict.value"),
    "cause": lambda row: "" if row.cause is None else row.cause.kind,
    "branch": attrgetter("origin.branch"),
    "commit": attrgetter("origin.revision"),
    "pull_request": attrgetter("origin.pull_request"),
}
rows = sa.Table(
    "rows",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *(sa.Column(name, sa.String, nullable=False, index=name == "time") for name in _TEXTS),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Float),  # all of the case; null where nobody measured
    sa.Column("sqnr_db", sa.Float),  # of the least accurate output; null where it has none
    sa.Column("body", sa.JSON, nullable=False),
    sa.UniqueConstraint("night", "case", "attempt", name="one_row_per_try"),
    sa.Index("rows_of_case", "case", "time", "verdict"),
)

_AT_ONCE = 400  # rows in one statement; SQLite takes 32766 values (SQLITE_MAX_VARIABLE_NUMBER)


class HistoryUnreachable(InfraError):
    """``url``: of the database, without its password."""

    kind = "history_unreachable"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        look = "whether the database runs and takes connections"
        if url.startswith("sqlite"):
            look = "whether its disk has room and its folder can be written"
        super().__init__(
            f"the history at {url} cannot be used: {why}",
            hint=f"look {look}; --history or $HIL_HISTORY names another one",
        )


class History:
    """A history, made by ``open_history``.

    Every method raises HistoryUnreachable, and UsageError for a row or night that another version
    wrote."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._insert = _insert_of(engine.dialect.name)

    @property
    def url(self) -> str:
        """Without its password."""
        return shown_url(self._engine.url)

    def begin(self, night: Night) -> Night:
        """Keep a night, unless it has one of that id; returns the one that is kept."""
        own = {"id": night.id, "suite": night.suite, "branch": night.origin.branch}
        new = self._insert(nights).values(**own, began=night.began, body=asdict(night))
        with self._transaction() as connection:
            connection.execute(new.on_conflict_do_nothing())
        return self.night(night.id) or night

    def append(self, new_rows: Sequence[Row]) -> int:
        """Insert rows; return how many were not stored before (by night, case and attempt)."""
        new = 0
        for start in range(0, len(new_rows), _AT_ONCE):
            values = [_columns(row) for row in new_rows[start : start + _AT_ONCE]]
            statement = self._insert(rows).values(values).on_conflict_do_nothing()
            statement = statement.inline().execution_options(preserve_rowcount=True)
            with self._transaction() as connection:
                new += connection.execute(statement).rowcount
        return new

    def blame(self, night: str, texts: Mapping[str, str]) -> None:
        """Keep what bisecting found, by case; what is there already stays."""
        with self._transaction() as connection:
            for case, text in texts.items():
                statement = self._insert(culprits).values(night=night, case=case, text=text)
                connection.execute(statement.on_conflict_do_nothing())

    def culprits(self, night: str) -> dict[str, str]:
        """Return the results of bisections, by case."""
        query = sa.select(culprits.c.case, culprits.c.text).filter_by(night=night)
        with self._transaction() as connection:
            return {each.case: each.text for each in connection.execute(query)}

    def nights(
        self, *, until: str | None = None, most: int | None = None, **of: str
    ) -> list[Night]:
        """Return nights, the newest first, at most ``most``.

        ``until``: only those begun no later than this; ``of``: only those of a ``suite`` and
        ``branch``."""
        query = sa.select(nights.c.body).order_by(nights.c.began.desc(), nights.c.id.desc())
        if until is not None:
            query = query.where(nights.c.began <= until)
        return self._read_all(Night, query.filter_by(**of).limit(most))

    def night(self, id: str) -> Night | None:
        return next(iter(self._read_all(Night, sa.select(nights.c.body).filter_by(id=id))), None)

    def unfinished(self, night: Night) -> list[Planned]:
        """Return the cases of a night that are still to run, or to be tried again."""
        last = last_tries(self.rows([night.id]))
        return [p for p in night.plan if p.case not in last or not last[p.case].settled]

    def rows(self, nights: Sequence[str]) -> list[Row]:
        """All tries of these nights, in the order in which they were written."""
        query = sa.select(rows.c.body).where(rows.c.night.in_(nights))
        return self._read_all(Row, query.order_by(rows.c.id))

    def of_case(self, case: str, most: int | None = None, /, **of: str) -> list[Row]:
        """All tries, the oldest first; the newest ``most``; ``of``: ``suite``, ``branch``."""
        query = sa.select(rows.c.body).filter_by(case=case, **of).limit(most)
        return self._read_all(Row, query.order_by(rows.c.time.desc(), rows.c.id.desc()))[::-1]

    def last_of(self, case: str, **of: str) -> dict[str, str] | None:
        """Suite and branch of the newest run of a case, in what is named of them."""
        query = sa.select(rows.c.suite, rows.c.branch).filter_by(case=case, **of)
        with self._transaction() as connection:
            newest = connection.execute(query.order_by(rows.c.time.desc()).limit(1)).first()
        return None if newest is None else {"suite": newest.suite, "branch": newest.branch}

    def cases(self) -> list[str]:
        """Every name in the history."""
        with self._transaction() as connection:
            query = sa.select(rows.c.case).distinct().order_by(rows.c.case)
            return list(connection.scalars(query))

    def every(self) -> Iterator[Row]:
        """In the order of time."""
        query = sa.select(rows.c.body).order_by(rows.c.time, rows.c.id)
        with self._transaction() as connection:
            bodies = connection.execution_options(yield_per=_AT_ONCE).scalars(query)
            yield from (self._read(Row, body) for body in bodies)

    def copy_to(self, other: History, night: str | None = None) -> Counter[str]:
        """Insert into ``other`` the nights and rows that it lacks: of one night, or of all.

        Idempotent. Returns how many ``nights`` and ``rows`` were new, and how many ``known``."""
        count = Counter(nights=0, rows=0, known=0)
        for copied in self.nights()[::-1] if night is None else filter(None, [self.night(night)]):
            count["known" if other.night(copied.id) else "nights"] += 1
            other.begin(copied)
            other.blame(copied.id, self.culprits(copied.id))
        copied_rows = iter(self.every() if night is None else self.rows([night]))
        while batch := list(islice(copied_rows, _AT_ONCE)):
            new = other.append(batch)
            count.update(rows=new, known=len(batch) - new)
        return count

    def prune(self, before: str, *, dry_run: bool = False) -> tuple[int, int]:
        """Delete what is older than ``before``; return how many nights and rows."""
        old = nights.c.began < before
        of_old = rows.c.night.in_(sa.select(nights.c.id).where(old))
        with self._transaction() as connection:
            of_old_nights = culprits.c.night.in_(sa.select(nights.c.id).where(old))
            connection.execute(sa.delete(culprits).where(of_old_nights))
            gone_rows = connection.execute(sa.delete(rows).where(of_old)).rowcount
            gone_nights = connection.execute(sa.delete(nights).where(old)).rowcount
            if dry_run:
                connection.rollback()
        return gone_nights, gone_rows

    def close(self) -> None:
        self._engine.dispose()

    def _read_all(self, kind: type[_Item], query: sa.Select[Any]) -> list[_Item]:
        with self._transaction() as connection:
            return [self._read(kind, body) for body in connection.scalars(query)]

    def _read(self, kind: type[_Item], body: Any) -> _Item:
        """Validate a row's types: another version of the harness may have written it."""
        try:
            item: _Item = TYPES[kind].validate_python(body)
        except ValueError as error:
            raise UsageError(
                f"the history at {self.url} has a row that this version cannot read: "
                f"{_first_line(error)}",
                hint="use the version that wrote it",
                kind="unreadable_row",
                url=self.url,
            ) from error
        return item

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with raises_unreachable(self.url), self._engine.begin() as connection:
            yield connection


def _insert_of(dialect: str) -> Callable[[sa.Table], Any]:
    """Return an insert that has PostgreSQL's "on conflict", as SQLite has."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as into_postgresql  # takes asyncio along

        return into_postgresql
    from sqlalchemy.dialects.sqlite import insert as into_sqlite

    return into_sqlite


def shown_url(url: sa.URL) -> str:
    """Without its password, and without the query, which may hold one."""
    return url.set(query={}).render_as_string(hide_password=True)


@contextmanager
def raises_unreachable(url: str) -> Iterator[None]:
    """Turn what a driver raises for a database that is gone into HistoryUnreachable."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        raise HistoryUnreachable(url, _first_line(error)) from error
    except sa.exc.DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise HistoryUnreachable(url, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "orig", None) or error)
    return next((line.strip() for line in text.splitlines() if line.strip()), text)


def _columns(row: Row) -> dict[str, object]:
    columns: dict[str, object] = {name: value(row) for name, value in _TEXTS.items()}
    columns |= {"attempt": row.attempt, "seconds": row.seconds.get("total")}
    columns["sqnr_db"] = row.sqnr_db
    return columns | {"body": asdict(row)}
