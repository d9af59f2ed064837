"""Finding a history's database, and bringing its tables to what this version reads (Alembic).

Without a URL it is ``history.db`` in the state directory. Nothing of Alembic is imported where the
tables are as they should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from harness.errors import UsageError
from harness.history.place import HEAD, history_url
from harness.history.store import Database, HistoryUnreachable, told_as_unreachable
from harness.system.files import disk_errors

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x68696C  # of PostgreSQL's advisory locks: one migrates, others wait
_PATIENCE = 60.0  # seconds that a writer waits for others
_VERSION = sa.table("alembic_version", sa.column("version_num"))


class UnknownDatabase(UsageError):
    """``url``: as it was named, without its password."""

    kind = "unknown_database"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"{url} is not a database for a history: {why}",
            hint="name a file as sqlite:///history.db, or postgresql://user@host/name",
        )


class NewerHistory(UsageError):
    """Another version of the harness made it. ``revision``: of its tables."""

    kind = "newer_history"

    def __init__(self, url: str, revision: str) -> None:
        self.url = url
        self.revision = revision
        super().__init__(
            f"the history at {url} has tables of revision {revision}, which this version of the "
            f"harness does not know (it knows up to {HEAD})",
            hint="use the version that wrote it, or a newer one",
        )


def open_history(said: str | None = None) -> Database:
    """The history at a URL, its tables made or brought up to date.

    Raises UnknownDatabase, NewerHistory, HistoryUnreachable, DiskError.
    """
    engine = _engine(history_url(said))
    url = engine.url.render_as_string(hide_password=True)
    with told_as_unreachable(url):
        try:
            _up_to_date(engine, url)
        except sa.exc.DatabaseError as error:
            if "not a database" in str(error):  # SQLITE_NOTADB
                raise UnknownDatabase(url, "the file is something else") from error
            raise
    return Database(engine)


def _engine(said: str) -> sa.Engine:
    try:
        url = sa.make_url(said)
    except sa.exc.ArgumentError as error:
        raise UnknownDatabase(said, "it is no URL") from error
    name = url.get_backend_name()
    if name == "sqlite":
        return _sqlite(url)
    if name != "postgresql":
        raise UnknownDatabase(
            url.render_as_string(hide_password=True), f"{name} is neither sqlite nor postgresql"
        )
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10},
    )


def _sqlite(url: sa.URL) -> sa.Engine:
    if url.database and url.database != ":memory:":
        with disk_errors("making the folder of the history"):
            Path(url.database).absolute().parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, connect_args={"timeout": _PATIENCE})

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:
        # readers and a writer side by side; what was committed outlives a kill of any process
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _up_to_date(engine: sa.Engine, url: str) -> None:
    if _revision(engine) == HEAD:
        return
    with _alone(engine) as connection:
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise NewerHistory(url, _revision(engine) or "?") from error


def _revision(engine: sa.Engine) -> str | None:
    """None for a database without tables of ours."""
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(_VERSION.name):
            return None
        return connection.scalar(sa.select(_VERSION.c.version_num))


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction in which nobody else migrates."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            with connection.begin():
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                yield connection
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()


__all__ = ["HistoryUnreachable", "NewerHistory", "UnknownDatabase", "open_history"]
