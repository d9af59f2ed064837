"""Results that the database did not take: kept on disk as JSON lines, delivered when it answers."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from harness.history.lines import Brought, Ending, Item, bring, line_of, read_lines
from harness.history.model import Row
from harness.history.place import spool_dir
from harness.history.store import History, HistoryUnreachable
from harness.system.files import disk_errors

if TYPE_CHECKING:
    import filelock  # as long as everything else that `hil history` imports

_PAUSE = 30.0  # seconds until a database that was gone is asked again


class Spool:
    """What one history is still to get. Any number of processes may share it."""

    def __init__(self, url: str) -> None:
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        self.file = spool_dir() / f"{name}.jsonl"

    def keep(self, items: Sequence[Item]) -> None:
        """Raises DiskError."""
        text = "".join(map(line_of, items)).encode()
        with disk_errors("keeping results for the history"):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock(), self.file.open("a+b") as file:
                _cut_unended(file)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

    def deliver(self, history: History) -> Brought:
        """Raises HistoryUnreachable; then everything is still there."""
        if not self.file.exists():
            return Brought()
        with disk_errors("delivering kept results to the history"), self._lock():
            if not self.file.exists():
                return Brought()
            brought = bring(history, read_lines(self.file))
            self.file.unlink()
        return brought

    def waiting(self) -> int:
        """How many lines."""
        try:
            return self.file.read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def _lock(self) -> filelock.BaseFileLock:
        import filelock

        return filelock.FileLock(self.file.with_suffix(".lock"))


def _cut_unended(file: IO[bytes]) -> None:
    """A line that a killed writer did not end is no result: its case is run again."""
    file.seek(0)
    there = file.read()
    file.truncate(there.rfind(b"\n") + 1)


class Deliverer:
    """Appends to a history; while that does not answer, to its spool."""

    def __init__(self, history: History, spool: Spool) -> None:
        self.history = history
        self.spool = spool
        self.why: HistoryUnreachable | None = None
        self._not_before = 0.0

    def append(self, rows: Sequence[Row]) -> None:
        self._send(rows)

    def end(self, night: str, shard: int, now: str) -> None:
        self._not_before = 0.0  # the last chance of this night
        self._send([Ending(night, shard, now)])

    def _send(self, items: Sequence[Item]) -> None:
        if time.monotonic() >= self._not_before:
            try:
                self.spool.deliver(self.history)
                bring(self.history, items)
                self.why = None
            except HistoryUnreachable as error:
                self.why = error
                self._not_before = time.monotonic() + _PAUSE
            else:
                return
        self.spool.keep(items)
