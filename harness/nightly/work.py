"""One task of a night: runs a job and returns its rows. Called in a worker, wherever that is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.firmware.source import source_named
from harness.nightly.history.model import Planned, Row
from harness.nightly.history.rows import row_of
from harness.nightly.suite import Job
from harness.run.identity import host
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.system.boundary import told
from harness.system.clock import now


class StoreNote(str):
    """A note on the store that machines share, not on the case."""

    __slots__ = ()


@dataclass(frozen=True)
class Task:
    """``attempt``: of the rows to be written. ``harness``: revision of the harness that planned."""

    night: str
    job: Job
    options: RunOptions
    attempt: int
    harness: str

    def again(self, names: Sequence[str]) -> Task:
        """The next attempt, for these rows of it."""
        kept = [
            (s, p)
            for s, p in zip(self.job.sources, self.job.planned, strict=True)
            if p.case in names
        ]
        job = replace(
            self.job, sources=tuple(s for s, _ in kept), planned=tuple(p for _, p in kept)
        )
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
    notes: list[str] = []
    try:
        if store is None:
            records = run_cases([job.case], options)
        else:
            from harness.nightly.shared import SharedCase, Store  # takes fsspec along

            shared = SharedCase(Store(store), job.case, options)
            shared.fetch()
            records = run_cases([job.case], options)
            shared.keep()
            notes = shared.notes
    except Exception as error:  # the boundary of a case: the others go on
        records = failed(job, error)
    seconds = time.monotonic() - started
    rows = (
        _row(task, record, planned, seconds)
        for record, planned in zip(records, job.planned, strict=True)
    )
    return tuple(replace(row, notes=(*row.notes, *map(StoreNote, notes))) for row in rows)


def lost(task: Task, error: BaseException) -> tuple[Row, ...]:
    """Rows of a task whose worker is gone. ``error``: how it ended."""
    return tuple(
        _row(task, record, planned, 0.0)
        for record, planned in zip(failed(task.job, error), task.job.planned, strict=True)
    )


def failed(job: Job, error: BaseException) -> list[RunRecord]:
    time = now()
    return [failed_record(job.case, time, told(error), source) for source in job.sources]


def _row(task: Task, record: RunRecord, planned: Planned, seconds: float) -> Row:
    return row_of(
        record,
        task.night,
        planned,
        attempt=task.attempt,
        seconds=seconds,
        harness=task.harness,
        host=host(),
    )
