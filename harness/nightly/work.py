"""One task of a night: a job, run to its rows. It is called in a worker, wherever that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.build.source import FirmwareSource
from harness.case.case import Case
from harness.errors import HarnessError
from harness.history.model import Planned, Row
from harness.history.rows import row_of
from harness.nightly.suite import Job
from harness.run.identity import host
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.system.boundary import told
from harness.system.clock import now

if TYPE_CHECKING:
    from harness.nightly.share import Brought


class OfStore(str):
    """A note on the store by which machines share, not on the case."""

    __slots__ = ()


Bringer = Callable[[Case, RunOptions], "Brought"]


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


def work(task: Task, bringer: Bringer | None = None) -> tuple[Row, ...]:
    """A row for each firmware of the job; whatever happens, there is one. ``bringer``: gets what
    the case needs from elsewhere."""
    started = time.monotonic()
    job = task.job
    options = replace(
        task.options,
        firmware=replace(task.options.firmware, sources=job.sources),
        simulator=job.simulator,
        limit_factor=task.options.limit_factor or job.limit_factor,
    )
    notes: tuple[str, ...] = ()
    try:
        errors: Mapping[FirmwareSource, HarnessError] = {}
        if bringer is not None:
            brought = bringer(job.case, options)
            errors, notes = brought.errors, brought.notes
        records = _records(job, options, errors)
    except Exception as error:  # the boundary of a case: the others go on
        records = failed(job, error)
    seconds = time.monotonic() - started
    rows = (
        _row(task, record, planned, seconds)
        for record, planned in zip(records, job.planned, strict=True)
    )
    return tuple(replace(row, notes=(*row.notes, *map(OfStore, notes))) for row in rows)


def _records(
    job: Job, options: RunOptions, errors: Mapping[FirmwareSource, HarnessError]
) -> list[RunRecord]:
    """One for each source of firmware; ``errors``: of those with which nothing can be run."""
    time = now()
    left = tuple(source for source in job.sources if source not in errors)
    firmware = replace(options.firmware, sources=left)
    ran = iter(run_cases([job.case], replace(options, firmware=firmware)) if left else ())
    return [
        failed_record(job.case, time, errors[source], source) if source in errors else next(ran)
        for source in job.sources
    ]


def lost(task: Task, error: BaseException) -> tuple[Row, ...]:
    """Of a task whose worker is gone; ``error`` says how."""
    return tuple(
        _row(task, record, planned, 0.0)
        for record, planned in zip(failed(task.job, error), task.job.planned, strict=True)
    )


def failed(job: Job, error: BaseException) -> list[RunRecord]:
    time = now()
    return [failed_record(job.case, time, told(error), source) for source in job.sources]


def _row(task: Task, record: RunRecord, planned: Planned, seconds: float) -> Row:
    return row_of(
        record, task.night, planned,
        attempt=task.attempt, seconds=seconds, harness=task.harness, host=host(),
    )  # fmt: skip
