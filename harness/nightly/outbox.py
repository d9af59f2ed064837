"""Results that the history's database did not take: kept in a SQLite history of their own in the
state directory, and delivered when the database answers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import filelock

from harness.nightly.history.database import open_history
from harness.nightly.history.model import Row
from harness.nightly.history.store import History, HistoryUnreachable
from harness.system.files import disk_errors
from harness.system.paths import state_dir

_RETRY_S = 30.0  # until a database that was gone is tried again


class Outbox:
    """What one history is still to get. Any number of processes may share it."""

    def __init__(self, url: str) -> None:
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        self.file = state_dir() / "outbox" / f"{name}.db"
        self._lock = filelock.FileLock(self.file.with_suffix(".lock"))

    def keep(self, rows: Sequence[Row], ending: tuple[str, int, str] | None = None) -> None:
        """``ending``: night, shard and time of a shard that ended. Raises DiskError."""
        with disk_errors("keeping results for the history"):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                kept = open_history(f"sqlite:///{self.file}")
                kept.append(rows)
                if ending is not None:
                    kept.end(*ending)
                kept.close()

    def deliver(self, history: History) -> int:
        """How many rows were new there. Raises HistoryUnreachable; then all of it is kept."""
        if not self.file.exists():
            return 0
        with disk_errors("delivering kept results to the history"), self._lock:
            if not self.file.exists():
                return 0
            kept = open_history(f"sqlite:///{self.file}")
            try:
                delivered = kept.copy_to(history).rows
            finally:
                kept.close()
            self.file.unlink()
        return delivered

    def waiting(self) -> int:
        """How many rows."""
        if not self.file.exists():
            return 0
        kept = open_history(f"sqlite:///{self.file}")
        try:
            return sum(1 for _ in kept.every())
        finally:
            kept.close()


class Recorder:
    """Appends to a history; while that does not answer, to its outbox. ``error``: why, or None."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.outbox = Outbox(history.url)
        self.error: HistoryUnreachable | None = None
        self._not_before = 0.0

    def append(self, rows: Sequence[Row], ending: tuple[str, int, str] | None = None) -> None:
        if time.monotonic() >= self._not_before or ending is not None:  # the last chance
            try:
                self.outbox.deliver(self.history)
                self.history.append(rows)
                if ending is not None:
                    self.history.end(*ending)
                self.error = None
                return
            except HistoryUnreachable as error:
                self.error = error
                self._not_before = time.monotonic() + _RETRY_S
        self.outbox.keep(rows, ending)
