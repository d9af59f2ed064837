"""A history's database: its place, its tables as this version reads them, and an outbox.

Alembic makes the tables; the outbox is for what the database does not take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

from harness.core.errors import UsageError
from harness.nightly.history.nights import Row
from harness.nightly.history.store import (
    History,
    HistoryUnreachable,
    metadata,
    raises_unreachable,
    shown_url,
)
from harness.system.artifact_cache import key_of
from harness.system.files import disk_errors
from harness.system.paths import state_dir

VARIABLE = "HIL_HISTORY"
HEAD = "0002"  # the newest of migrations/versions
_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x68696C  # of PostgreSQL's advisory locks: one migrates, others wait
_RETRY_S = 30.0  # until a database that was gone is tried again
_BUSY_S = 60.0  # that a writer of SQLite waits for others
_VERSION = sa.table("alembic_version", sa.column("version_num"))


class UnknownDatabase(UsageError):
    """``url``: without its password."""

    kind = "unknown_database"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"{url} is not a database for a history: {why}",
            hint="name a file as sqlite:///history.db, or postgresql://user@host/name",
        )


def history_url(url: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """``--history``, else ``$HIL_HISTORY``, else ``history.db`` in the state directory."""
    return url or environ.get(VARIABLE) or f"sqlite:///{state_dir() / 'history.db'}"


def open_history(url: str | None = None) -> History:
    """Return the history at a URL (or ``history_url``), its tables made or brought up to date.

    Raises UnknownDatabase, HistoryUnreachable, DiskError, and UsageError for a history of a newer
    version of the harness."""
    engine = _engine(history_url(url))
    shown = shown_url(engine.url)
    with raises_unreachable(shown):
        try:
            _migrate(engine, shown)
        except sa.exc.DatabaseError as error:
            if "not a database" in str(error):  # SQLITE_NOTADB
                raise UnknownDatabase(shown, "the file is something else") from error
            raise
    return History(engine)


def _engine(text: str) -> sa.Engine:
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError as error:
        raise UnknownDatabase(text, "it is not a URL") from error
    name = url.get_backend_name()
    if name == "sqlite":
        return _sqlite(url)
    if name != "postgresql":
        raise UnknownDatabase(shown_url(url), f"{name} is neither sqlite nor postgresql")
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10},
    )


def _sqlite(url: sa.URL) -> sa.Engine:
    file = url.database or ""  # what SQLite makes of "", ":memory:" and "file:..." may keep nothing
    if url.host or not file or file == ":memory:" or file.startswith("file:"):
        raise UnknownDatabase(shown_url(url), "it names no file, so nothing would be kept")
    with disk_errors("making the folder of the history"):
        place = Path(file).absolute()
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and not place.is_file():
            raise UnknownDatabase(str(url), "that is not a regular file")
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_S})

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:
        # readers and a writer side by side; what was committed outlives a kill of any process
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _migrate(engine: sa.Engine, url: str) -> None:
    """Make the tables of a new database, and bring those of an older one up to date."""
    with engine.connect() as connection:
        if _revision(connection) == HEAD:
            return
    with _alone(engine) as connection:
        from alembic import command  # takes long, and few calls migrate
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        found = _revision(connection)
        try:
            if found is None:
                metadata.create_all(connection)
                command.stamp(config, "head")
            else:
                command.upgrade(config, "head")
        except CommandError as error:
            raise UsageError(
                f"the history at {url} has tables of revision {found}, which this version of the "
                f"harness does not know (it knows up to {HEAD})",
                hint="use the version that wrote it, or a newer one",
                kind="newer_history",
                url=url,
                revision=found,
            ) from error


def _revision(connection: sa.Connection) -> str | None:
    """Return the revision of the tables; None if the database has no history yet."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    return connection.scalar(sa.select(_VERSION.c.version_num))


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction in which no other process migrates."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            with connection.begin():
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                yield connection
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()


class Recorder:
    """Writes to a history; while that does not answer, to an outbox.

    The outbox is a SQLite history of its own in the state directory, of which any number of
    processes may write. ``error``: why, or None."""

    def __init__(self, history: History) -> None:
        name = key_of(history.url)[:16]
        self.history = history
        self.outbox = state_dir() / "outbox" / f"{name}.db"
        self.error: HistoryUnreachable | None = None
        self._lock = filelock.FileLock(self.outbox.with_suffix(".lock"))
        self._not_before = 0.0

    def append(self, rows: Sequence[Row], *, last: bool = False) -> None:
        """``last``: there will be no other chance. Raises DiskError."""
        if time.monotonic() >= self._not_before or last:
            try:
                self.deliver()
                self.history.append(rows)
                self.error = None
                return
            except HistoryUnreachable as error:
                self.error = error
                self._not_before = time.monotonic() + _RETRY_S
        with disk_errors("keeping results for the history"):
            self.outbox.parent.mkdir(parents=True, exist_ok=True)
            with self._lock, closing(open_history(f"sqlite:///{self.outbox}")) as kept:
                kept.append(rows)

    def deliver(self) -> None:
        """Move what waits in the outbox to the history.

        Raises HistoryUnreachable; then all of it is kept."""
        if not self.outbox.exists():
            return
        with disk_errors("delivering kept results to the history"), self._lock:
            if self.outbox.exists():
                with closing(open_history(f"sqlite:///{self.outbox}")) as kept:
                    kept.copy_to(self.history)
                self.outbox.unlink()

    def waiting(self) -> int:
        """How many rows are in the outbox."""
        if not self.outbox.exists():
            return 0
        with closing(open_history(f"sqlite:///{self.outbox}")) as kept:
            return sum(1 for _ in kept.every())
