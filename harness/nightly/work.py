"""One task of a night: a job, run to its rows. It is called in a worker, wherever that is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from harness.history.model import Planned, Row
from harness.history.rows import row_of
from harness.nightly.suite import Job
from harness.run.identity import host
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.system.boundary import told


@dataclass(frozen=True)
class Task:
    """``attempt``: the rows of a job that are to be written now. ``harness``: its revision, which
    the one who plans has asked for."""

    night: str
    job: Job
    options: RunOptions
    attempt: int
    harness: str

    def again(self, names: Sequence[str]) -> Task:
        """Once more, for those of its rows."""
        kept = [(s, p) for s, p in zip(self.job.sources, self.job.planned, strict=True)
                if p.case in names]  # fmt: skip
        job = replace(self.job, sources=tuple(s for s, _ in kept),
                      planned=tuple(p for _, p in kept))  # fmt: skip
        return replace(self, job=job, attempt=self.attempt + 1)


def work(task: Task) -> tuple[Row, ...]:
    """A row for each firmware of the job; whatever happens, there is one."""
    started = time.monotonic()
    job = task.job
    firmware = replace(task.options.firmware, sources=job.sources)
    options = replace(
        task.options,
        firmware=firmware,
        simulator=job.simulator,
        limit_factor=task.options.limit_factor or job.limit_factor,
    )
    try:
        records = run_cases([job.case], options)
    except Exception as error:  # the boundary of a case: the others go on
        records = failed(job, error)
    seconds = time.monotonic() - started
    return tuple(
        _row(task, record, planned, seconds)
        for record, planned in zip(records, job.planned, strict=True)
    )


def lost(task: Task, error: BaseException) -> tuple[Row, ...]:
    """Of a task whose worker is gone; ``error`` says how."""
    return tuple(
        _row(task, record, planned, 0.0)
        for record, planned in zip(failed(task.job, error), task.job.planned, strict=True)
    )


def failed(job: Job, error: BaseException) -> list[RunRecord]:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return [failed_record(job.case, now, told(error), source) for source in job.sources]


def _row(task: Task, record: RunRecord, planned: Planned, seconds: float) -> Row:
    return row_of(
        record, task.night, planned,
        attempt=task.attempt, seconds=seconds, harness=task.harness, host=host(),
    )  # fmt: skip
