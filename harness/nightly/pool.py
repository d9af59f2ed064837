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
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Protocol

from harness.core.errors import InfraError
from harness.firmware.source import source_named
from harness.nightly.history.nights import Night, Row
from harness.nightly.history.row_of_record import row_of
from harness.nightly.store import Store, entries_of
from harness.nightly.suite import NightJob
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.system.call import die_with_parent


@dataclass(frozen=True)
class Task:
    """A job to run in a night.

    ``night``: without its plan. ``attempt``: of the rows to be written. ``harness``: revision of
    the harness that planned."""

    night: Night
    job: NightJob
    options: RunOptions
    attempt: int
    harness: str

    def again(self, names: Sequence[str]) -> Task:
        """Return the next attempt, for these rows of it."""
        pairs = zip(self.job.sources, self.job.planned, strict=True)
        sources, planned = zip(*(pair for pair in pairs if pair[1].case in names), strict=True)
        job = replace(self.job, sources=sources, planned=planned)
        return replace(self, job=job, attempt=self.attempt + 1)


def work(task: Task, store: str | None = None) -> tuple[Row, ...]:
    """Return a row for each firmware of the job, whatever happens.

    ``store``: URL of what machines share, before and after the run."""
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
            shared.share(entries)
        records = run_cases([job.case], options)
        if shared is not None:
            shared.share(entries)
    except Exception as error:  # the boundary of a case: the others go on
        records = failed(job, error)
    rows = _rows(task, records, time.monotonic() - started)
    notes = () if shared is None else shared.notes
    return tuple(replace(row, notes=(*row.notes, *notes)) for row in rows)


def lost(task: Task, error: BaseException) -> tuple[Row, ...]:
    """Rows of a task whose worker is gone. ``error``: how it ended."""
    return _rows(task, failed(task.job, error), 0.0)


def failed(job: NightJob, error: BaseException) -> list[RunRecord]:
    return [failed_record(job.case, error, source) for source in job.sources]


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
        """Do the task, and return when it is done. Raises NotDone if it was not finished.

        ``room`` threads call it at a time. Any other exception ends the night."""

    def close(self) -> None:
        """End whatever is still running."""


class LocalPool:
    """Independent processes of this machine: one that dies takes one case with it.

    ``store``: what they share with other machines."""

    def __init__(self, workers: int, store: str | None = None) -> None:
        self.room = workers
        self._store = store
        self._idle: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
        for _ in range(workers):
            self._idle.put(_worker())

    def run(self, task: Task) -> tuple[Row, ...]:
        worker = self._idle.get()
        try:
            return worker.submit(work, task, self._store).result()
        except BrokenProcessPool as error:
            worker = _worker()
            raise WorkerLost from error
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        for process in multiprocessing.active_children():
            process.kill()
            process.join()


def _worker() -> ProcessPoolExecutor:
    """One process, which starts with its first task; a fork would copy our locks."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, spawn, _begin, (os.getpid(),))


def _begin(parent: int) -> None:
    """Make a worker die with the night, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
