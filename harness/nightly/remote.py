"""What runs elsewhere for ``dask_pool``: a case in a dask worker, and a few calls in the scheduler.

A worker's labels are dask resources, one of each, which a task takes for itself: the harness that
the worker has, and each FVP that is installed there. So a worker runs one case at a time, none of
another harness, and none whose FVP it does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from distributed import get_worker
from distributed.diagnostics.plugin import SchedulerPlugin

from harness.nightly.history.model import Row
from harness.nightly.work import Task, work
from harness.run.identity import exact_revision
from harness.system.toolchain import find_fvp

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

_STARTED = "hil-started"  # a topic of events


def run_task(task: Task, store: str) -> tuple[Row, ...]:
    """In a thread of a worker."""
    report_start()
    return work(task, store)


def report_start() -> None:
    """Tells the scheduler that the task has begun: it now dies with its worker (``OneLife``)."""
    worker = get_worker()
    worker.log_event(_STARTED, worker.get_current_task())


class OneLife(SchedulerPlugin):  # type: ignore[misc]
    """A task that had begun when its worker was lost fails instead of being started again
    elsewhere: the night keeps both tries. One that still waited there goes elsewhere.

    ``TaskState.suspicious`` counts the workers that a task was lost with, and more than
    ``allowed_failures`` end it (distributed's documentation, "Scheduling State").
    """

    name = "hil-one-life"

    def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def log_event(self, topic: str, msg: object) -> None:
        if topic == _STARTED and msg in self._scheduler.tasks:
            self._scheduler.tasks[msg].suspicious = self._scheduler.allowed_failures


async def label(fvps: Sequence[str], dask_worker: Worker) -> str:
    """Gives a worker its labels; returns its harness. ``fvps``: executables to look for."""
    labels = [harness_label(_revision()), *(fvp_label(name) for name in fvps if find_fvp(name))]
    await dask_worker.set_resources(**dict.fromkeys(labels, 1))
    return _revision()


def labels_of_workers(dask_scheduler: Scheduler) -> Mapping[str, frozenset[str]]:
    """By address."""
    return {
        address: frozenset(name for name, number in worker.resources.items() if number > 0)
        for address, worker in dask_scheduler.workers.items()
    }


def harness_label(revision: str) -> str:
    return f"hil {revision}"


def fvp_label(executable: str) -> str:
    return f"hil {executable}"


@cache
def _revision() -> str:
    """As it was when the worker started, which is what it has loaded."""
    return exact_revision()
