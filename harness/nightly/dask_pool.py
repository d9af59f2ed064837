"""Workers on any number of machines: the tasks of a night are tasks of ``dask.distributed``.

dask has the queues, the balance and the watch over its workers. Added here: labels for whoever
joins (``remote``), and an end for what can end in no other way: a scheduler that is gone, a task
that no worker can do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from distributed import Client, KilledWorker
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend

from harness.config.loading import Target, load_target
from harness.config.model import SimulatorName
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.nightly.history.model import Row
from harness.nightly.pool import NotDone, WorkerLost
from harness.nightly.remote import (
    OneLife,
    fvp_label,
    harness_label,
    label,
    labels_of_workers,
    run_task,
)
from harness.nightly.suite import Job
from harness.nightly.work import Task
from harness.sim.pick import AUTO
from harness.system.boundary import told
from harness.system.progress import Progress

_POLL_S = 2.0  # between two looks at the workers
_ROOM = 10_000  # tasks that wait at the scheduler
_HOW = "each worker is `dask worker URL --nthreads 1`, with the harness in its environment"
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

    def __init__(self, url: str, wanted: str, others: Mapping[str, str]) -> None:
        self.url, self.wanted, self.others = url, wanted, dict(others)
        reasons = "; ".join(f"{address} has {why}" for address, why in sorted(others.items())[:5])
        super().__init__(
            f"the scheduler {url} has no worker with harness {wanted}"
            + (f": {reasons}" if reasons else ""),
            hint="update and restart those workers; " + _HOW if reasons else _HOW,
        )


class NoWorkerFor(NotDone):
    """``lacking``: the labels that no worker had for ``seconds``."""

    kind = "no_worker_for"

    def __init__(self, labels: Iterable[str], seconds: float) -> None:
        self.lacking, self.seconds = sorted(labels), seconds
        super().__init__(
            f"for {seconds:.0f} s there was no worker for the case, which needs one with "
            f"{' and '.join(self.lacking)}",
            hint="did the workers stop, or restart with another harness? " + _HOW,
        )


class WorkerFailed(NotDone):
    """``cause`` and ``detail``: the exception, of dask or of the harness."""

    kind = "worker_failed"

    def __init__(self, error: BaseException) -> None:
        self.cause, self.detail = type(error).__name__, told(error).message
        super().__init__(
            f"the worker could not do the task: {self.detail}",
            hint="the worker's own log has more",
        )


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
        self._members: dict[str, frozenset[str]] = {}
        self._waiting: dict[Answer, tuple[frozenset[str], Future[Any]]] = {}
        self._last_seen: dict[frozenset[str], float] = {}
        self._lock = threading.Lock()
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
        return _ROOM

    def submit(self, task: Task) -> Answer:
        job, fvp = self._choice.settle(task.job, self._installed)
        labels = frozenset([self._harness, *([fvp_label(fvp)] if fvp else [])])
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()
        executor = self._client.get_executor(
            pure=False, retries=0, resources=dict.fromkeys(labels, 1)
        )
        given = executor.submit(self._call, replace(task, job=job), self._cluster.store)
        with self._lock:
            self._waiting[answer] = labels, given
        given.add_done_callback(lambda done: self._pass_on(done, answer))
        return answer

    def close(self) -> None:
        """What runs on a worker runs to its end there; what waits is forgotten."""
        self._closed.set()
        with self._lock:
            left = [given for _, given in self._waiting.values()]
            self._waiting.clear()
        for given in left:
            given.cancel()
        self._watcher.join()
        self._client.close()

    def _usable(self) -> list[frozenset[str]]:
        return [labels for labels in self._members.values() if self._harness in labels]

    def _pass_on(self, done: Future[Any], answer: Answer) -> None:
        with self._lock:
            if self._waiting.pop(answer, None) is None:
                return
        if done.cancelled():
            _fail(answer, SchedulerLost(self._cluster.url))
            return
        error = done.exception()
        if error is None:
            answer.set_result(done.result())
        elif isinstance(error, KilledWorker):
            _fail(answer, WorkerLost(str(error.last_worker.address)))
        else:
            _fail(answer, WorkerFailed(error))

    def _wait_for_a_worker(self) -> None:
        until = time.monotonic() + self._cluster.patience
        while True:
            self._look()
            if self._usable():
                return
            if time.monotonic() >= until or self._others:
                raise NoWorkers(self._cluster.url, self._revision, self._others)
            self._closed.wait(self._pause)

    @property
    def _pause(self) -> float:
        return min(_POLL_S, self._cluster.patience / 4)

    def _look(self) -> None:
        """Reads who is there, and labels whoever is new."""
        addresses = self._client.run_on_scheduler(labels_of_workers).keys()
        new = sorted(addresses - self._members.keys())
        if new:
            answers = self._client.run(label, self._fvps, workers=new, on_error="return")
            for address, revision in answers.items():
                if revision != self._revision:
                    self._refuse(address, revision)
        self._members = dict(self._client.run_on_scheduler(labels_of_workers))

    def _refuse(self, address: str, answer: object) -> None:
        """``answer``: its revision, or why its harness cannot be loaded."""
        known = isinstance(answer, str)
        why = f"harness {answer}" if known else f"no harness that loads ({_line(answer)})"
        self._others[address] = why
        self._progress(f"the worker {address} is not used: it has {why}, not {self._revision}")

    def _watch(self) -> None:
        while not self._closed.wait(self._pause):
            try:
                self._look()
            except Exception:  # whatever the connection ended with
                if not self._closed.is_set() and not self._answers():
                    self._give_up(lambda _: SchedulerLost(self._cluster.url), lambda _: True)
            else:
                self._end_what_nobody_can_do()

    def _answers(self) -> bool:
        """A worker that goes while it is asked is no fault of the scheduler's."""
        with suppress(Exception):
            self._client.run_on_scheduler(labels_of_workers)
            return True
        return False

    def _end_what_nobody_can_do(self) -> None:
        now = time.monotonic()
        with self._lock:
            wanted = {labels for labels, _ in self._waiting.values()}
        for labels in wanted:
            if labels not in self._last_seen or any(labels <= m for m in self._members.values()):
                self._last_seen[labels] = now
        patience = self._cluster.patience
        late = {labels for labels in wanted if now - self._last_seen[labels] >= patience}
        if late:
            self._give_up(lambda labels: NoWorkerFor(labels, patience), late.__contains__)

    def _give_up(
        self,
        why: Callable[[frozenset[str]], HarnessError],
        which: Callable[[frozenset[str]], bool],
    ) -> None:
        with self._lock:
            ended = {a: entry for a, entry in self._waiting.items() if which(entry[0])}
            for answer in ended:
                del self._waiting[answer]
        for answer, (labels, given) in ended.items():
            given.cancel()
            _fail(answer, why(labels))


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
    try:  # what Client would find out later, and not get over
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
        raise SchedulerFailed(cluster.url, f"does not answer: {_line(error)}", hint) from error
    try:
        client.register_plugin(OneLife())
        client.run_on_scheduler(labels_of_workers)
    except Exception as error:  # of its environment
        client.close()
        detail = f"cannot serve a night: {type(error).__name__}: {_line(error)}"
        hint = "start `dask scheduler` in an environment with this harness, executorch-hil"
        raise SchedulerFailed(cluster.url, detail, hint) from error
    return client


def _line(error: object) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _fail(answer: Answer, error: HarnessError) -> None:
    with suppress(InvalidStateError):  # it was answered meanwhile
        answer.set_exception(error)
