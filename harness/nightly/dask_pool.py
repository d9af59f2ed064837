"""Workers on any number of machines: the tasks of a night are tasks of ``dask.distributed``.

dask has the queues, the balance and the watch over its workers. What is added here: labels for
whoever joins (``remote``), and an end for what can end in no other way: a scheduler that is gone,
a task for which there is no worker.
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

from harness.errors import HarnessError, InfraError, UsageError
from harness.history.model import Row
from harness.nightly.pool import NotDone, WorkerLost
from harness.nightly.remote import OneLife, fleet, hil_case, label, of_fvp, of_harness
from harness.nightly.suite import Job
from harness.nightly.work import Task
from harness.simulate.pick import AUTO
from harness.system.boundary import told
from harness.system.progress import Progress
from harness.target.loading import Target, load_target
from harness.target.model import SimulatorName

_LOOK = 2.0  # seconds between two looks at the fleet
_PATIENCE = 60.0  # seconds without a worker for a task
_CONNECT = 10.0  # seconds
_ROOM = 10_000  # tasks that wait at the scheduler, so that each worker finds one for itself
_HOW = "each worker is `dask worker URL --nthreads 1`, with the harness in its environment"
Answer = Future[tuple[Row, ...]]


class SchedulerUnreachable(InfraError):
    """``url``; ``detail``: what the connection ended with."""

    kind = "scheduler_unreachable"

    def __init__(self, url: str, detail: str) -> None:
        self.url, self.detail = url, detail
        super().__init__(
            f"the scheduler {url} does not answer: {detail}",
            hint="is `dask scheduler` running there, in an environment that has the harness?",
        )


class SchedulerUnfit(InfraError):
    """``url``; ``detail``: why it cannot serve a night."""

    kind = "scheduler_unfit"

    def __init__(self, url: str, detail: str) -> None:
        self.url, self.detail = url, detail
        super().__init__(
            f"the scheduler {url} cannot serve a night: {detail}",
            hint="start `dask scheduler` in an environment with this harness, executorch-hil",
        )


class SchedulerLost(InfraError):
    """``url``: of what answered before."""

    kind = "scheduler_lost"

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(
            f"the scheduler {url} is gone in the middle of the night",
            hint="what was judged is kept; start it and its workers again, and go on with --resume",
        )


class NoWorkers(InfraError):
    """``url``; ``others``: workers that cannot be used, with why."""

    kind = "no_workers"

    def __init__(self, url: str, wanted: str, others: Mapping[str, str]) -> None:
        self.url, self.wanted, self.others = url, wanted, dict(others)
        there = "; ".join(f"{address} has {why}" for address, why in sorted(others.items())[:5])
        super().__init__(
            f"the scheduler {url} has no worker with harness {wanted}"
            + (f": {there}" if there else ""),
            hint="update and restart those workers; " + _HOW if there else _HOW,
        )


class NoWorkerFor(NotDone):
    """``lacking``: what no worker had for ``seconds``."""

    kind = "no_worker_for"

    def __init__(self, labels: Iterable[str], seconds: float) -> None:
        self.lacking, self.seconds = sorted(labels), seconds
        super().__init__(
            f"for {seconds:.0f} s there was no worker for the case, which needs one with "
            f"{' and '.join(self.lacking)}",
            hint="did the workers stop, or restart with another harness? " + _HOW,
        )


class WorkerFailed(NotDone):
    """``cause`` and ``detail``: the exception, of dask or of our own."""

    kind = "worker_failed"

    def __init__(self, error: BaseException) -> None:
        self.cause, self.detail = type(error).__name__, told(error).message
        super().__init__(
            f"the worker could not do the task: {self.detail}",
            hint="the worker's own log has more",
        )


@dataclass(frozen=True)
class Cluster:
    """``url`` of the scheduler; ``store`` is what its workers share. ``patience``: seconds that a
    task waits for a worker that can do it."""

    url: str
    store: str
    patience: float = _PATIENCE
    connect: float = _CONNECT


class DaskPool:
    """The workers of a scheduler that have the harness of ``revision``. ``tell`` hears of others.

    Raises SchedulerUnreachable, SchedulerUnfit, NoWorkers.
    """

    def __init__(
        self,
        cluster: Cluster,
        revision: str,
        jobs: Iterable[Job],
        tell: Progress,
        call: Callable[[Task, str], tuple[Row, ...]] = hil_case,
    ) -> None:
        self._cluster, self._revision, self._tell, self._call = cluster, revision, tell, call
        self._boards = _Boards()
        self._fvps = self._boards.fvps(jobs)
        self._harness = of_harness(revision)
        self._others: dict[str, str] = {}
        self._members: dict[str, frozenset[str]] = {}
        self._known: set[str] = set()
        self._waiting: dict[Answer, tuple[frozenset[str], Future[Any]]] = {}
        self._had: dict[frozenset[str], float] = {}
        self._gate = threading.Lock()
        self._closed = threading.Event()
        self._client = _connected(cluster)
        try:
            self._first_look()
        except BaseException:
            self._client.close()
            raise
        self._installed = frozenset().union(*self._usable().values())
        self._watcher = threading.Thread(target=self._watch, name="hil-fleet", daemon=True)
        self._watcher.start()

    @property
    def workers(self) -> int:
        return max(1, len(self._usable()))

    @property
    def room(self) -> int:
        return max(_ROOM, 4 * self.workers)

    def submit(self, task: Task) -> Answer:
        job, fvp = self._boards.settled(task.job, self._installed)
        labels = frozenset([self._harness, *([of_fvp(fvp)] if fvp else [])])
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()
        executor = self._client.get_executor(
            pure=False, retries=0, resources=dict.fromkeys(labels, 1)
        )
        given = executor.submit(self._call, replace(task, job=job), self._cluster.store)
        with self._gate:
            self._waiting[answer] = labels, given
        given.add_done_callback(lambda done: self._pass_on(done, answer))
        return answer

    def close(self) -> None:
        """What runs on a worker runs to its end there; what waits is forgotten."""
        self._closed.set()
        with self._gate:
            left = [given for _, given in self._waiting.values()]
            self._waiting.clear()
        for given in left:
            given.cancel()
        self._watcher.join()
        self._client.close()

    def _usable(self) -> dict[str, frozenset[str]]:
        return {a: labels for a, labels in self._members.items() if self._harness in labels}

    def _pass_on(self, done: Future[Any], answer: Answer) -> None:
        with self._gate:
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

    def _first_look(self) -> None:
        """Waits for a first worker that can be used."""
        until = time.monotonic() + self._cluster.patience
        while True:
            self._look()
            if self._usable():
                return
            if time.monotonic() >= until or self._others:
                raise NoWorkers(self._cluster.url, self._revision, self._others)
            self._closed.wait(min(_LOOK, self._cluster.patience / 4))

    def _look(self) -> None:
        """Who is there, with labels for whoever is new. Raises OSError, and what the scheduler
        has to say."""
        there = self._client.run_on_scheduler(fleet)
        new = sorted(there.keys() - self._known)
        if new:
            said = self._client.run(label, self._fvps, workers=new, on_error="return")
            for address, revision in said.items():
                self._known.add(address)
                if revision != self._revision:
                    self._refuse(address, revision)
            there = self._client.run_on_scheduler(fleet)
        self._known &= there.keys()
        self._members = dict(there)

    def _refuse(self, address: str, said: object) -> None:
        why = (
            f"harness {said}" if isinstance(said, str) else f"no harness that loads ({_told(said)})"
        )
        self._others[address] = why
        self._tell(f"the worker {address} is not used: it has {why}, not {self._revision}")

    def _watch(self) -> None:
        while not self._closed.wait(min(_LOOK, self._cluster.patience / 4)):
            try:
                self._look()
            except Exception:  # whatever the connection ended with; what was asked ends with it
                if not self._closed.is_set() and not self._answers():
                    self._give_up(lambda _: SchedulerLost(self._cluster.url), lambda _: True)
            else:
                self._end_what_nobody_can_do()

    def _answers(self) -> bool:
        """A worker that goes while it is asked is no fault of the scheduler's."""
        with suppress(Exception):
            self._client.run_on_scheduler(fleet)
            return True
        return False

    def _end_what_nobody_can_do(self) -> None:
        now = time.monotonic()
        with self._gate:
            wanted = {labels for labels, _ in self._waiting.values()}
        for labels in wanted:
            if labels not in self._had or any(labels <= has for has in self._members.values()):
                self._had[labels] = now
        late = {one for one in wanted if now - self._had[one] >= self._cluster.patience}
        if late:
            self._give_up(lambda one: NoWorkerFor(one, self._cluster.patience), late.__contains__)

    def _give_up(
        self,
        why: Callable[[frozenset[str]], HarnessError],
        which: Callable[[frozenset[str]], bool],
    ) -> None:
        with self._gate:
            ended = {a: one for a, one in self._waiting.items() if which(one[0])}
            for answer in ended:
                del self._waiting[answer]
        for answer, (labels, given) in ended.items():
            given.cancel()
            _fail(answer, why(labels))


class _Boards:
    """Which FVP a job needs, if any: targets are read once."""

    def __init__(self) -> None:
        self._read: dict[str, Target | None] = {}

    def fvps(self, jobs: Iterable[Job]) -> tuple[str, ...]:
        """Executables that some job may run on."""
        return tuple(sorted({name for job in jobs if (name := self._of(job)) is not None}))

    def settled(self, job: Job, installed: frozenset[str]) -> tuple[Job, str | None]:
        """The job with its simulator, the same whoever runs it, and the FVP that this is. What a
        night runs on is what its workers have when it begins."""
        fvp = self._of(job)
        target = self._target(job.case.target)
        if fvp is None or target is None:
            return job, None
        if of_fvp(fvp) in installed:
            return replace(job, simulator=SimulatorName.FVP), fvp
        others = [name for name in target.settings.auto if name is not SimulatorName.FVP]
        if job.simulator == AUTO and others:
            return replace(job, simulator=others[0]), None
        return job, None  # any worker says that it is missing

    def _of(self, job: Job) -> str | None:
        target = self._target(job.case.target)
        if target is None or target.settings.fvp is None:
            return None
        first = target.settings.auto[0] if job.simulator == AUTO else job.simulator
        return target.settings.fvp.executable if first == SimulatorName.FVP else None

    def _target(self, name: str) -> Target | None:
        """None for one that is malformed: its case will say so."""
        if name not in self._read:
            try:
                self._read[name] = load_target(name)
            except UsageError:
                self._read[name] = None
        return self._read[name]


def _connected(cluster: Cluster) -> Client:
    try:  # what Client would find out later, and not get over
        scheme, place = parse_address(cluster.url, strict=True)
        get_backend(scheme)
        parse_host_port(place)
    except ValueError as error:
        raise UsageError(
            f"{cluster.url} is no address of a scheduler: {error}",
            hint="`dask scheduler` says its own, as tcp://host:8786",
        ) from error
    try:
        client = Client(cluster.url, timeout=cluster.connect, set_as_default=False)
    except OSError as error:
        raise SchedulerUnreachable(cluster.url, _first_line(error)) from error
    try:
        client.register_plugin(OneLife())
        client.run_on_scheduler(fleet)
    except Exception as error:  # of its environment, which is not ours
        client.close()
        raise SchedulerUnfit(
            cluster.url, f"{type(error).__name__}: {_first_line(error)}"
        ) from error
    return client


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _told(error: object) -> str:
    """dask gives what it cannot carry over as an Exception with its words."""
    name = "" if type(error) is Exception else f"{type(error).__name__}: "
    return f"{name}{error}".splitlines()[0]


def _fail(answer: Answer, error: HarnessError) -> None:
    with suppress(InvalidStateError):  # it was answered meanwhile
        answer.set_exception(error)
