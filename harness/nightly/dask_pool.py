"""Workers on any number of machines: the tasks of a night are tasks of ``dask.distributed``.

dask has the queues, the balance and the watch over its workers. Labels are added for whoever joins:
dask resources, one of each, which a task takes for itself. A worker has one for its harness and one
for each FVP that is installed there. So it runs one case at a time, none of another harness, and
none whose FVP it does not have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from distributed import Client, KilledWorker, get_worker
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from harness.config.loading import Target, load_target
from harness.config.model import SimulatorName
from harness.core.errors import InfraError, UsageError
from harness.nightly.history.model import Row
from harness.nightly.pool import NotDone, Task, WorkerLost, work
from harness.nightly.suite import Job
from harness.run.record import exact_harness_revision
from harness.sim.simulator import AUTO
from harness.system.boundary import as_harness_error
from harness.system.progress import Progress
from harness.system.toolchain import find_fvp

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

_POLL_S = 2.0  # between two looks for new workers
_WAITING_TASKS = 10_000  # at the scheduler
_STARTED = "hil-started"  # a topic of dask's events
_START = "each worker is `dask worker URL --nthreads 1`, with the harness in its environment"
Answer = Future[tuple[Row, ...]]


class SchedulerFailed(InfraError):
    """``url``; ``detail``: how it failed."""

    kind = "scheduler_failed"

    def __init__(self, url: str, detail: str, hint: str) -> None:
        self.url, self.detail = url, detail
        super().__init__(f"the scheduler {url} {detail}", hint=hint)


class SchedulerLost(SchedulerFailed):
    kind = "scheduler_lost"

    def __init__(self, url: str) -> None:
        hint = "every result so far is kept; start it and its workers again, and use --resume"
        super().__init__(url, "is gone in the middle of the night", hint)


class NoWorkers(InfraError):
    """``others``: workers that cannot be used, with the reason."""

    kind = "no_workers"

    def __init__(self, url: str, harness: str, others: Mapping[str, str]) -> None:
        self.url, self.others = url, dict(others)
        reasons = "; ".join(f"{address} has {why}" for address, why in sorted(others.items())[:5])
        super().__init__(
            f"the scheduler {url} has no worker with harness {harness}"
            + (f": {reasons}" if reasons else ""),
            hint="update and restart those workers; " + _START if reasons else _START,
        )


class NoWorkerFor(NotDone):
    """``lacking``: the labels that no worker had for ``seconds``."""

    kind = "no_worker_for"

    def __init__(self, labels: Iterable[str], seconds: float) -> None:
        self.lacking, self.seconds = sorted(labels), seconds
        super().__init__(
            f"for {seconds:.0f} s there was no worker for the case, which needs one with "
            f"{' and '.join(self.lacking)}",
            hint="did the workers stop, or restart with another harness? " + _START,
        )


class WorkerFailed(NotDone):
    """``cause`` and ``detail``: the exception, of dask or of the harness."""

    kind = "worker_failed"

    def __init__(self, error: BaseException) -> None:
        self.cause, self.detail = type(error).__name__, as_harness_error(error).message
        super().__init__(
            f"the worker could not do the task: {self.detail}",
            hint="the worker's own log has more",
        )


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
    ``allowed_failures`` end it (distributed's documentation, "Scheduling State"). ``patience``:
    seconds that a task waits for a worker that can do it.
    """

    name = "hil-one-life"

    def __init__(self, patience: float) -> None:
        self._patience = patience

    def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        scheduler.no_workers_timeout = self._patience

    def log_event(self, topic: str, msg: object) -> None:
        if topic == _STARTED and msg in self._scheduler.tasks:
            self._scheduler.tasks[msg].suspicious = self._scheduler.allowed_failures


async def label_worker(fvps: Sequence[str], dask_worker: Worker) -> str:
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
    return exact_harness_revision()


@dataclass(frozen=True)
class Cluster:
    """``url`` of the scheduler; ``store``: what its workers share. ``patience``: seconds that a
    task waits for a worker that can do it; ``connect``: seconds."""

    url: str
    store: str
    patience: float = 60.0
    connect: float = 10.0


class DaskPool:
    """The workers of a scheduler that have the harness of ``revision``; ``progress`` reports the
    others. Raises UsageError, SchedulerFailed, NoWorkers."""

    def __init__(
        self,
        cluster: Cluster,
        revision: str,
        jobs: Iterable[Job],
        progress: Progress,
        call: Callable[[Task, str], tuple[Row, ...]] = run_task,
    ) -> None:
        self._cluster, self._revision, self._progress = cluster, revision, progress
        self._call = call
        self._choice = FvpChoice()
        self._fvps = tuple(sorted({name for job in jobs if (name := self._choice.of(job))}))
        self._harness = harness_label(revision)
        self._others: dict[str, str] = {}
        self._labels: dict[str, frozenset[str]] = {}  # of each worker, by address
        self._closed = threading.Event()
        self._client = _connected(cluster)
        try:
            self._wait_for_a_worker()
        except BaseException:
            self._client.close()
            raise
        self._installed = frozenset().union(*self._usable())
        self._watcher = threading.Thread(target=self._watch, name="hil-workers", daemon=True)
        self._watcher.start()

    @property
    def workers(self) -> int:
        return max(1, len(self._usable()))

    @property
    def room(self) -> int:
        return _WAITING_TASKS

    def submit(self, task: Task) -> Answer:
        job, fvp = self._choice.settle(task.job, self._installed)
        labels = [self._harness, *([fvp_label(fvp)] if fvp else [])]
        executor = self._client.get_executor(
            pure=False, retries=0, resources=dict.fromkeys(labels, 1)
        )
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()
        submitted = executor.submit(self._call, replace(task, job=job), self._cluster.store)
        submitted.add_done_callback(lambda done: self._pass_on(done, answer, labels))
        return answer

    def close(self) -> None:
        """What runs on a worker runs to its end there; what waits is forgotten."""
        self._closed.set()
        self._watcher.join()
        self._client.close()

    def _pass_on(self, done: Future[Any], answer: Answer, labels: Sequence[str]) -> None:
        error = None if done.cancelled() else done.exception()
        with suppress(InvalidStateError):  # the night is over
            if done.cancelled():  # by the client, which has lost its connection
                answer.set_exception(SchedulerLost(self._cluster.url))
            elif error is None:
                answer.set_result(done.result())
            elif isinstance(error, KilledWorker):
                answer.set_exception(WorkerLost(str(error.last_worker.address)))
            elif isinstance(error, NoValidWorkerError | NoWorkerError):
                answer.set_exception(NoWorkerFor(labels, self._cluster.patience))
            else:
                answer.set_exception(WorkerFailed(error))

    def _usable(self) -> list[frozenset[str]]:
        return [labels for labels in self._labels.values() if self._harness in labels]

    def _wait_for_a_worker(self) -> None:
        deadline = time.monotonic() + self._cluster.patience
        while True:
            self._label_new_workers()
            if self._usable():
                return
            if time.monotonic() >= deadline or self._others:
                raise NoWorkers(self._cluster.url, self._revision, self._others)
            self._closed.wait(self._pause)

    @property
    def _pause(self) -> float:
        return min(_POLL_S, self._cluster.patience / 4)

    def _watch(self) -> None:
        while not self._closed.wait(self._pause):
            with suppress(Exception):  # the tasks report a scheduler that is gone
                self._label_new_workers()

    def _label_new_workers(self) -> None:
        addresses = self._client.run_on_scheduler(labels_of_workers).keys()
        new = sorted(addresses - self._labels.keys())
        if new:
            answers = self._client.run(label_worker, self._fvps, workers=new, on_error="return")
            for address, revision in answers.items():
                if revision != self._revision:
                    self._refuse(address, revision)
        self._labels = dict(self._client.run_on_scheduler(labels_of_workers))

    def _refuse(self, address: str, answer: object) -> None:
        """``answer``: its revision, or why its harness cannot be loaded."""
        known = isinstance(answer, str)
        why = f"harness {answer}" if known else f"no harness that loads ({_first_line(answer)})"
        self._others[address] = why
        self._progress(f"the worker {address} is not used: it has {why}, not {self._revision}")


class FvpChoice:
    """Which FVP a job runs on, if any. Targets are read once."""

    def __init__(self) -> None:
        self._targets: dict[str, Target | None] = {}

    def of(self, job: Job) -> str | None:
        """The executable of the FVP that the job may run on."""
        target = self._target(job.case.target)
        if target is None or target.simulators.fvp is None:
            return None
        first = target.simulators.auto[0] if job.simulator == AUTO else job.simulator
        return target.simulators.fvp.executable if first == SimulatorName.FVP else None

    def settle(self, job: Job, installed: frozenset[str]) -> tuple[Job, str | None]:
        """The job with its simulator, the same whichever worker runs it, and the FVP that this
        is. A night runs on what its workers have when it begins: labels ``installed``."""
        fvp, target = self.of(job), self._target(job.case.target)
        if fvp is None or target is None:
            return job, None
        if fvp_label(fvp) in installed:
            return replace(job, simulator=SimulatorName.FVP), fvp
        others = [name for name in target.simulators.auto if name is not SimulatorName.FVP]
        if job.simulator == AUTO and others:
            return replace(job, simulator=others[0]), None
        return job, None  # any worker reports that it is missing

    def _target(self, name: str) -> Target | None:
        """None for a malformed one: its case reports that."""
        if name not in self._targets:
            self._targets[name] = None
            with suppress(UsageError):
                self._targets[name] = load_target(name)
        return self._targets[name]


def _connected(cluster: Cluster) -> Client:
    try:  # Client itself would retry a wrong address for ever
        scheme, place = parse_address(cluster.url, strict=True)
        get_backend(scheme)
        parse_host_port(place)
    except ValueError as error:
        raise UsageError(
            f"{cluster.url} is no address of a scheduler: {error}",
            hint="`dask scheduler` prints its own, as tcp://host:8786",
        ) from error
    try:
        client = Client(cluster.url, timeout=cluster.connect, set_as_default=False)
    except OSError as error:
        hint = "is `dask scheduler` running there, in an environment that has the harness?"
        detail = f"does not answer: {_first_line(error)}"
        raise SchedulerFailed(cluster.url, detail, hint) from error
    try:
        client.register_plugin(OneLife(cluster.patience))
        client.run_on_scheduler(labels_of_workers)
    except Exception as error:  # of its environment
        client.close()
        detail = f"cannot serve a night: {type(error).__name__}: {_first_line(error)}"
        hint = "start `dask scheduler` in an environment with this harness, executorch-hil"
        raise SchedulerFailed(cluster.url, detail, hint) from error
    return client


def _first_line(error: object) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
