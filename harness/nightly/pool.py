"""Workers: they take a task, which is a job of the suite, and return its rows.

Pool is the interface; LocalPool has processes of this machine, ``dask_pool`` workers elsewhere.
``work`` and ``Task`` travel to the worker: both can be pickled.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Protocol

from harness.core.errors import InfraError
from harness.firmware.source import source_named
from harness.nightly.history.model import Night, Row
from harness.nightly.history.rows import row_of
from harness.nightly.shared import Store, entries_of
from harness.nightly.suite import Job
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.system.boundary import as_harness_error
from harness.system.clock import now
from harness.system.locks import die_with_parent


class StoreNote(str):
    """A note on the store that machines share, not on the case."""

    __slots__ = ()


@dataclass(frozen=True)
class Task:
    """``night``: without its plan. ``attempt``: of the rows to be written. ``harness``: revision of
    the harness that planned."""

    night: Night
    job: Job
    options: RunOptions
    attempt: int
    harness: str

    def again(self, names: Sequence[str]) -> Task:
        """The next attempt, for these rows of it."""
        pairs = zip(self.job.sources, self.job.planned, strict=True)
        sources, planned = zip(*(pair for pair in pairs if pair[1].case in names), strict=True)
        job = replace(self.job, sources=sources, planned=planned)
        return replace(self, job=job, attempt=self.attempt + 1)


def work(task: Task, store: str | None = None) -> tuple[Row, ...]:
    """A row for each firmware of the job, whatever happens. ``store``: URL of what machines share:
    what it has of the case is fetched before, and what it lacks is kept there after."""
    started = time.monotonic()
    job = task.job
    options = replace(
        task.options,
        firmware=replace(task.options.firmware, sources=tuple(map(source_named, job.sources))),
        simulator=job.simulator,
        limit_factor=task.options.limit_factor or job.limit_factor,
    )
    shared = None if store is None else Store(store)
    try:
        entries = [] if shared is None else entries_of(job.case, options)
        if shared is not None:
            shared.fetch(entries)
        records = run_cases([job.case], options)
        if shared is not None:
            shared.keep(entries)
    except Exception as error:  # the boundary of a case: the others go on
        records = failed(job, error)
    rows = _rows(task, records, time.monotonic() - started)
    notes = () if shared is None else tuple(map(StoreNote, shared.notes))
    return tuple(replace(row, notes=(*row.notes, *notes)) for row in rows)


def lost(task: Task, error: BaseException) -> tuple[Row, ...]:
    """Rows of a task whose worker is gone. ``error``: how it ended."""
    return _rows(task, failed(task.job, error), 0.0)


def failed(job: Job, error: BaseException) -> list[RunRecord]:
    time = now()
    failure = as_harness_error(error)
    return [failed_record(job.case, time, failure, source) for source in job.sources]


def _rows(task: Task, records: Sequence[RunRecord], seconds: float) -> tuple[Row, ...]:
    ran: dict[str, Any] = {"attempt": task.attempt, "seconds": seconds, "harness": task.harness}
    pairs = zip(records, task.job.planned, strict=True)
    return tuple(row_of(record, task.night, planned, **ran) for record, planned in pairs)


class NotDone(InfraError):
    """A task that a pool did not finish. Its case is tried again."""


class WorkerLost(NotDone):
    """The process that ran a case ended by itself. ``worker``: its address, if it was elsewhere."""

    kind = "worker_lost"

    def __init__(self, worker: str | None = None) -> None:
        self.worker = worker
        where = f" {worker}" if worker else ""
        super().__init__(
            f"the worker process{where} that ran the case ended in the middle of it",
            hint="if the kernel ran out of memory, `dmesg` says so; fewer --jobs need less",
        )


class Pool(Protocol):
    """``room``: how many tasks it takes at once."""

    @property
    def room(self) -> int: ...

    def run(self, task: Task) -> tuple[Row, ...]:
        """Does the task, and returns when it is done; called by ``room`` threads at a time. Raises
        NotDone if it was not finished; any other exception ends the night."""

    def close(self) -> None:
        """Ends whatever is still running."""


class LocalPool:
    """Independent processes of this machine: one that dies takes one case with it. ``store``: what
    they share with other machines."""

    def __init__(self, workers: int, store: str | None = None) -> None:
        self._store = store
        self._workers = [_Worker() for _ in range(workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self.room = workers

    def run(self, task: Task) -> tuple[Row, ...]:
        worker = self._idle.get()
        try:
            return worker.run(task, self._store)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        for worker in self._workers:
            worker.end()


class _Worker:
    """A process that does one task after the other; the next task after it was lost starts a new
    one."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None

    def run(self, task: Task, store: str | None) -> tuple[Row, ...]:
        if self._process is None:
            context = multiprocessing.get_context("spawn")  # a fork would copy our locks
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, os.getpid()))
            self._process.start()
            theirs.close()
        try:
            self._pipe.send((task, store))
            rows: tuple[Row, ...] = self._pipe.recv()
        except (EOFError, OSError) as error:
            self.end()
            raise WorkerLost from error
        return rows

    def end(self) -> None:
        """Kills it, whatever it does. No error if it is gone already."""
        if (process := self._process) is not None:
            process.kill()
            process.join()
            self._process = None


def _serve(pipe: Connection, parent: int) -> None:
    """The worker's process. A killed night leaves none behind; Ctrl-C is handled by the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    with suppress(EOFError):
        while True:
            pipe.send(work(*pipe.recv()))
