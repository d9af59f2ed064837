"""Workers on any number of machines: the tasks of a night are tasks of ``dask.distributed``.

dask has the queues, the balance and the watch over its workers. Each worker gets a label: one dask
resource that says its harness and its FVPs, which a task takes for itself. So a worker runs one
case at a time, and all workers of a night are like the machine that began it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache

from distributed import Client, KilledWorker, Scheduler, TimeoutError, Worker, WorkerPlugin
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend

from harness.config.loading import load_target
from harness.core.errors import InfraError, UsageError
from harness.core.simulator_name import SimulatorName
from harness.nightly.history.nights import Row
from harness.nightly.pool import NotDone, Task, WorkerLost, work
from harness.nightly.suite import NightJob
from harness.run.record import exact_harness_revision
from harness.sim.simulator import AUTO
from harness.system.progress import Progress
from harness.system.toolchain import find_fvp
from harness.system.unexpected import as_harness_error

_ANSWER_SECONDS = 10.0  # in which a scheduler has to answer
_START = "`dask scheduler` prints its URL, tcp://HOST:8786; a worker is `dask worker --nthreads 1`"


class SchedulerFailed(InfraError):
    kind = "scheduler_failed"

    def __init__(self, url: str, problem: str, hint: str = _START) -> None:
        self.url = url
        super().__init__(f"the scheduler {url} {problem}", hint=hint)


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
    """By address: one of each night that asked for other FVPs."""
    return {address: list(w.resources) for address, w in dask_scheduler.workers.items()}


def set_rules(patience: float, dask_scheduler: Scheduler) -> None:
    """Make a task whose worker is lost fail at once: the night has a row, and tries again.

    One that waits ``patience`` seconds for a worker fails, too."""
    dask_scheduler.allowed_failures = 0
    dask_scheduler.no_workers_timeout = patience


class DaskPool:
    """The workers of a scheduler at ``url`` that are like this machine.

    ``progress`` reports the others. ``store``: what they share; ``patience``: seconds to wait for a
    worker. Raises SchedulerFailed."""

    def __init__(
        self,
        url: str,
        store: str,
        jobs: Iterable[NightJob],
        progress: Progress,
        *,
        patience: float = 60.0,
        call: Callable[[Task, str], tuple[Row, ...]] = work,
    ) -> None:
        self._url, self._store, self._call = url, store, call
        fvps = sorted({name for job in jobs for name in _fvps_of(job)})
        self._label = label_of_this_machine(fvps)
        self._client = _connected(url, patience, fvps)
        labels = self._client.run_on_scheduler(labels_of_workers)
        others = {a: " or ".join(own) for a, own in labels.items() if self._label not in own}
        self.workers = len(labels) - len(others)
        self.room = 2 * self.workers  # so that none waits for its next one
        if not self.workers:
            self._client.close()
            have = "".join(f"; {address} has {other}" for address, other in others.items())
            raise SchedulerFailed(url, f"has no worker with {self._label}{have}")
        for address, other in others.items():
            progress(f"the worker {address} is not used: it has {other}, not {self._label}")

    def run(self, task: Task) -> tuple[Row, ...]:
        future = self._client.submit(
            self._call, task, self._store, pure=False, retries=0, resources={self._label: 1}
        )
        try:
            rows: tuple[Row, ...] = future.result()
        except CancelledError as error:  # by the client, which has lost its connection
            hint = "every result so far is kept; start it and its workers again, and use --resume"
            problem = "is gone in the middle of the night"
            raise SchedulerFailed(self._url, problem, hint) from error
        except KilledWorker as error:
            raise WorkerLost(str(error.last_worker.address)) from error
        except Exception as error:  # of the worker, or no worker came: the other tasks go on
            why = as_harness_error(error).message
            message = f"no worker with {self._label} could do the task: {why}"
            hint = f"the workers' logs have more; {_START}"
            raise NotDone(message, hint=hint, kind="worker_failed") from error
        return rows

    def close(self) -> None:
        """Drop the waiting tasks; a task that runs on a worker runs to its end there."""
        self._client.close()


def _fvps_of(job: NightJob) -> Iterator[str]:
    with suppress(UsageError):  # its case reports that
        fvp = load_target(job.case.target).simulators.fvp
        if fvp is not None and job.simulator in (AUTO, SimulatorName.FVP):
            yield fvp.executable


def _connected(url: str, patience: float, fvps: Sequence[str]) -> Client:
    """Return a client of the scheduler, once a worker is there and all workers have labels."""
    try:
        get_backend(parse_address(url, strict=True)[0])  # Client would retry a wrong one for ever
        parse_host_port(parse_address(url)[1])
        client = Client(url, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SchedulerFailed(url, f"does not answer: {error}") from error
    try:
        client.run_on_scheduler(set_rules, patience)
        with suppress(TimeoutError):  # there is none: the caller says so
            client.wait_for_workers(1, timeout=patience)
        client.register_plugin(WorkerLabel(fvps))
    except Exception as error:  # of the environment of the scheduler or of a worker
        client.close()
        problem = f"or one of its workers cannot serve a night: {type(error).__name__}: {error}"
        raise SchedulerFailed(url, problem) from error
    return client
