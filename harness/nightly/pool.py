"""Workers: whoever takes a task and gives its rows. The night asks no more of them than this.

Another engine is another object with the members of Pool (``concurrent.futures`` is its language):
``work`` and ``Task`` are what travels, and both can be pickled. ``dask_pool`` is one.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Protocol

from harness.errors import InfraError
from harness.history.model import Row
from harness.nightly.work import Task, work

_PR_SET_PDEATHSIG = 1  # prctl(2)


class NotDone(InfraError):
    """A task that was given to a pool, and is not done. Its case is tried again."""


class WorkerLost(NotDone):
    """The process that ran a case is gone, and nobody asked it to go. ``worker``: its address, of
    one elsewhere."""

    kind = "worker_lost"

    def __init__(self, worker: str | None = None) -> None:
        self.worker = worker
        where = f" {worker}" if worker else ""
        super().__init__(
            f"the worker process{where} that ran the case ended in the middle of it",
            hint="a kernel that ends processes for want of memory says so in `dmesg`; fewer --jobs "
            "need less",
        )


class Pool(Protocol):
    """``workers``: how many tasks it does at once; ``room``: how many can be given to it."""

    @property
    def workers(self) -> int: ...

    @property
    def room(self) -> int: ...

    def submit(self, task: Task) -> Future[tuple[Row, ...]]:
        """Its exception is NotDone where the task was not done; any other ends the night."""

    def close(self) -> None:
        """Whatever is still running is ended."""


class LocalPool:
    """Processes of this machine, each for itself: one that dies takes one case with it. ``store``:
    what they share with others."""

    def __init__(self, workers: int, store: str | None = None) -> None:
        self._store = store
        self._idle = [_Worker() for _ in range(workers)]
        self._busy: dict[Future[tuple[Row, ...]], _Worker] = {}
        self.workers = self.room = workers

    def submit(self, task: Task) -> Future[tuple[Row, ...]]:
        self._collect()
        worker = self._idle.pop()
        given = worker.executor.submit(_work, task, self._store)
        answer: Future[tuple[Row, ...]] = Future()
        answer.set_running_or_notify_cancel()
        self._busy[answer] = worker
        given.add_done_callback(lambda done: _pass_on(done, answer))
        return answer

    def pid_of(self, answer: Future[tuple[Row, ...]]) -> int:
        """The process that is at a task."""
        return self._busy[answer].pid

    def _collect(self) -> None:
        """Whoever has answered is free; in the place of one that is gone there is a new one."""
        for answer in [answer for answer in self._busy if answer.done()]:
            worker = self._busy.pop(answer)
            if isinstance(answer.exception(), WorkerLost):
                worker.end()
                worker = _Worker()
            self._idle.append(worker)

    def close(self) -> None:
        self._collect()
        for worker in self._busy.values():
            worker.end()
        for worker in self._idle:
            worker.dismiss()


def _work(task: Task, store: str | None) -> tuple[Row, ...]:
    if store is None:
        return work(task)
    from harness.nightly.share import bring
    from harness.nightly.store import Store

    return work(task, lambda case, options: bring(case, options, Store(store)))


class _Worker:
    """One process; it starts while the night is still being prepared."""

    def __init__(self) -> None:
        self.executor = ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),  # nothing of our threads and locks
            initializer=_end_with_parent,
            initargs=(os.getpid(),),
        )
        self._pid = self.executor.submit(os.getpid)

    @property
    def pid(self) -> int:
        return self._pid.result()

    def dismiss(self) -> None:
        """It has nothing to do, and leaves in order."""
        self.executor.shutdown(wait=True)

    def end(self) -> None:
        """Whatever it does. One that is gone already is no error."""
        with suppress(BrokenProcessPool, ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.executor.shutdown(wait=True, cancel_futures=True)


def _end_with_parent(parent: int) -> None:
    """A night that is killed leaves nobody at work; Ctrl-C is for the parent to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _pass_on(done: Future[tuple[Row, ...]], answer: Future[tuple[Row, ...]]) -> None:
    error = done.exception() if not done.cancelled() else WorkerLost()
    if isinstance(error, BrokenProcessPool):
        error = WorkerLost()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())
