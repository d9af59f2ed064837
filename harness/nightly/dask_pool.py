"""Workers on any number of machines: the tasks of a night are tasks of ``dask.distributed``.

dask has the queues, the balance and the watch over its workers. Each worker gets a label: one dask
resource that says its harness and its FVPs, which a task takes for itself. So a worker runs one
case at a time, and all workers of a night are like the machine that began it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from distributed import Client, KilledWorker, TimeoutError, WorkerPlugin
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from harness.config.loading import load_target
from harness.config.model import SimulatorName
from harness.core.errors import InfraError, UsageError
from harness.nightly.history.model import Row
from harness.nightly.pool import NotDone, Task, WorkerLost, translated, work
from harness.nightly.suite import Job
from harness.run.record import exact_harness_revision
from harness.sim.simulator import AUTO
from harness.system.boundary import as_harness_error
from harness.system.progress import Progress
from harness.system.toolchain import find_fvp

if TYPE_CHECKING:
    from distributed import Scheduler, Worker

_START = "each worker is `dask worker URL --nthreads 1`, with this harness in its environment"


class SchedulerFailed(InfraError):
    kind = "scheduler_failed"

    def __init__(self, url: str, problem: str, hint: str = _START) -> None:
        self.url = url
        super().__init__(f"the scheduler {url} {problem}", hint=hint)


class SchedulerLost(SchedulerFailed):
    kind = "scheduler_lost"

    def __init__(self, url: str) -> None:
        hint = "every result so far is kept; start it and its workers again, and use --resume"
        super().__init__(url, "is gone in the middle of the night", hint)


class NoWorkers(SchedulerFailed):
    """``others``: the labels of workers that are not like this machine, by address."""

    kind = "no_workers"

    def __init__(self, url: str, label: str, others: Mapping[str, str]) -> None:
        self.others = dict(others)
        have = "".join(f"; {address} has {other}" for address, other in sorted(others.items())[:5])
        super().__init__(url, f"has no worker with {label}{have}")


class NoWorkerFor(NotDone):
    """No worker had ``label`` for ``seconds``."""

    kind = "no_worker_for"

    def __init__(self, label: str, seconds: float) -> None:
        self.label, self.seconds = label, seconds
        super().__init__(
            f"for {seconds:.0f} s there was no worker with {label}",
            hint=f"did the workers stop, or restart with another harness? {_START}",
        )


class WorkerFailed(NotDone):
    """``cause``: the type of the exception, of dask or of the harness."""

    kind = "worker_failed"

    def __init__(self, error: BaseException) -> None:
        self.cause = type(error).__name__
        message = f"the worker could not do the task: {as_harness_error(error).message}"
        super().__init__(message, hint="the worker's own log has more")


class WorkerLabel(WorkerPlugin):  # type: ignore[misc]
    """Labels every worker, also one that joins later. ``fvps``: executables to look for there."""

    name = "hil-label"

    def __init__(self, fvps: Sequence[str]) -> None:
        self._fvps = fvps

    def setup(self, worker: Worker) -> Awaitable[None]:
        label = label_of_this_machine(self._fvps)
        return worker.set_resources(**{label: 1})  # type: ignore[no-any-return]


def label_of_this_machine(fvps: Sequence[str]) -> str:
    installed = ", ".join(filter(find_fvp, fvps))
    return f"harness {_revision()}" + (f" and {installed}" if installed else "")


@cache
def _revision() -> str:
    """As it was when the worker started, which is what it has loaded."""
    return exact_harness_revision()


def labels_of_workers(dask_scheduler: Scheduler) -> Mapping[str, Sequence[str]]:
    """By address."""
    return {address: list(w.resources) for address, w in dask_scheduler.workers.items()}


def set_rules(patience: float, dask_scheduler: Scheduler) -> None:
    """A task whose worker is lost fails at once: the night has a row of it, and tries it again. One
    that waits ``patience`` seconds for a worker fails, too."""
    dask_scheduler.allowed_failures = 0
    dask_scheduler.no_workers_timeout = patience


class DaskPool:
    """The workers of a scheduler at ``url`` that are like this machine; ``progress`` reports the
    others. ``store``: what they share; ``patience``: seconds to wait for a worker. Raises
    UsageError, SchedulerFailed, NoWorkers."""

    def __init__(
        self,
        url: str,
        store: str,
        jobs: Iterable[Job],
        progress: Progress,
        *,
        patience: float = 60.0,
        call: Callable[[Task, str], tuple[Row, ...]] = work,
    ) -> None:
        self._url, self._store, self._patience, self._call = url, store, patience, call
        fvps = sorted({name for job in jobs for name in _fvps_of(job)})
        self._label = label_of_this_machine(fvps)
        self._client = _connected(url, patience, fvps)
        labels = self._client.run_on_scheduler(labels_of_workers)
        others = {
            address: " or ".join(own) for address, own in labels.items() if self._label not in own
        }
        if len(others) == len(labels):
            self._client.close()
            raise NoWorkers(url, self._label, others)
        for address, other in others.items():
            progress(f"the worker {address} is not used: it has {other}, not {self._label}")
        self.workers = len(labels) - len(others)
        self.room = 2 * self.workers  # so that none waits for its next one

    def submit(self, task: Task) -> Future[tuple[Row, ...]]:
        executor = self._client.get_executor(pure=False, retries=0, resources={self._label: 1})
        return translated(executor.submit(self._call, task, self._store), self._explained)

    def close(self) -> None:
        """What runs on a worker runs to its end there; what waits is forgotten."""
        self._client.close()

    def _explained(self, error: BaseException) -> BaseException:
        if isinstance(error, CancelledError):  # by the client, which has lost its connection
            return SchedulerLost(self._url)
        if isinstance(error, KilledWorker):
            return WorkerLost(str(error.last_worker.address))
        if isinstance(error, NoValidWorkerError | NoWorkerError):
            return NoWorkerFor(self._label, self._patience)
        return WorkerFailed(error)


def _fvps_of(job: Job) -> Iterator[str]:
    """The executable of the FVP that the target has, if any."""
    with suppress(UsageError):  # its case reports that
        fvp = load_target(job.case.target).simulators.fvp
        if fvp is not None and job.simulator in (AUTO, SimulatorName.FVP):
            yield fvp.executable


def _connected(url: str, patience: float, fvps: Sequence[str]) -> Client:
    """With a worker, and with labels on all workers."""
    try:  # Client itself would retry a wrong address for ever
        scheme, place = parse_address(url, strict=True)
        get_backend(scheme)
        parse_host_port(place)
    except ValueError as error:
        hint = "`dask scheduler` prints its own, as tcp://host:8786"
        raise UsageError(f"{url} is no address of a scheduler: {error}", hint=hint) from error
    try:
        client = Client(url, timeout=min(10.0, patience), set_as_default=False)
    except OSError as error:
        hint = "is `dask scheduler` running there, in an environment that has the harness?"
        raise SchedulerFailed(url, f"does not answer: {error}", hint) from error
    try:
        client.run_on_scheduler(set_rules, patience)
        with suppress(TimeoutError):  # there is none: the caller says so
            client.wait_for_workers(1, timeout=patience)
        client.register_plugin(WorkerLabel(fvps))
    except Exception as error:  # of the environment of the scheduler or of a worker
        client.close()
        problem = f"or one of its workers cannot serve a night: {type(error).__name__}: {error}"
        hint = "start all of them in an environment with this harness, executorch-hil"
        raise SchedulerFailed(url, problem, hint) from error
    return client
