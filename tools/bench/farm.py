"""What a night costs beyond its cases on other machines: by ``hil bench nightly``.

The scheduler is a process of its own. A thousand workers are objects in a few processes, whose
tasks sleep: that measures the scheduler, not them.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from distributed import Client

from harness.core.errors import InfraError
from harness.core.verdict import Verdict
from harness.nightly.dask_pool import DaskPool
from harness.nightly.history.database import Recorder
from harness.nightly.history.nights import Row
from harness.nightly.history.store import History
from harness.nightly.night import NightRequest, begin, run_night
from harness.nightly.pool import Task, work
from harness.nightly.suite import NightSuite, Shard
from harness.run.pipeline import RunOptions
from harness.system.paths import import_root
from harness.system.progress import Progress, silent

CASE_SECONDS = 3.2  # of a case: about what one with a guest of Linux takes
_PROCESSES = 4
_START = 300.0  # seconds
_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1h",
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.worker.memory.monitor-interval": "1h",
}
_TIED = ("setpriv", "--pdeathsig", "KILL", "--")  # to whoever measures
_TICK = os.sysconf("SC_CLK_TCK")
Call = Callable[[Task, str], tuple[Row, ...]]


class Farm:
    """``url`` of a scheduler; ``pid``: its process."""

    def __init__(self, folder: Path, workers: int, processes: int) -> None:
        self.folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        scheduler_file = folder / "scheduler.json"
        scheduler = self._start(
            "-m",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(scheduler_file),
        )
        self.pid = scheduler.pid
        self._wait(lambda: scheduler_file.exists() and scheduler_file.read_text().endswith("}"))
        self.url: str = json.loads(scheduler_file.read_text())["address"]
        for number in range(processes):
            share = workers // processes + (number < workers % processes)
            self._start("-c", f"from {__name__} import host; host({self.url!r}, {share})")

    def seconds(self) -> float:
        """Of a core that the scheduler has used (proc(5): utime and stime)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def idle(self, seconds: float = 5.0) -> float:
        """The share of a core that it uses for workers that have nothing to do."""
        before = self.seconds()
        time.sleep(seconds)
        return (self.seconds() - before) / seconds

    def close(self) -> None:
        for one in reversed(self._children):
            one.kill()
            one.wait()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self._children)}.log").open("wb") as log:
            child = subprocess.Popen(
                [*_TIED, sys.executable, *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(import_root())},
            )
        self._children.append(child)
        return child

    def _wait(self, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + _START
        while not ready():
            if time.monotonic() > until or any(one.poll() is not None for one in self._children):
                raise InfraError(f"a scheduler did not start; see {self.folder}")
            time.sleep(0.05)


@contextmanager
def farm(folder: Path, workers: int, processes: int = 2) -> Iterator[Farm]:
    folder.mkdir()
    made = Farm(folder, workers, processes)
    try:
        yield made
    finally:
        made.close()


def host(url: str, workers: int) -> None:
    """So many workers in this process, each without what dask looks at itself with: a worker has
    a machine for that."""
    import dask
    from distributed import Worker

    dask.config.set(_QUIET)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    async def serve() -> None:
        there = []
        for _ in range(workers):
            there.append(await Worker(url, nthreads=1, dashboard=False, memory_limit=0))
        await asyncio.Event().wait()

    asyncio.run(serve())


def nothing(task: Task, store: str) -> tuple[Row, ...]:
    return _rows(task)


def asleep(task: Task, store: str) -> tuple[Row, ...]:
    time.sleep(CASE_SECONDS)
    return _rows(task)


def empty_row(night: str, case: str, at: datetime) -> Row:
    metrics = {f"figure_{i}": 100_000 + i for i in range(12)}
    return Row(
        night,
        case,
        at.isoformat(timespec="seconds"),
        "t",
        case[2:],
        "bundled",
        Verdict.PASS,
        metrics=metrics,
        seconds={"total": 1.0},
    )


def _rows(task: Task) -> tuple[Row, ...]:
    now = datetime.now(timezone.utc)
    return tuple(empty_row(task.night.id, one.case, now) for one in task.job.planned)


def night_at(
    there: Farm,
    suite: NightSuite,
    history: History,
    call: Call = work,
    workers: int = 1,
) -> tuple[float, float, list[Row]]:
    """How long a night took there, how many seconds of a core its scheduler used beyond what it
    does for workers that are idle, and its rows."""
    with ExitStack() as stack:
        with Client(there.url, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=_START)
        store = str(there.folder / "store")
        pool = DaskPool(there.url, store, suite.jobs, silent, patience=_START, call=call)
        stack.callback(pool.close)
        night = begin(suite, history, NightRequest())
        idle = there.idle()
        began, used = time.monotonic(), there.seconds()
        run_night(
            suite,
            night,
            Shard(),
            RunOptions(),
            pool,
            Recorder(history),
            lambda *_: None,
        )
        took = time.monotonic() - began
        return took, there.seconds() - used - idle * took, history.rows([night.id])


def measure(
    scratch: Path,
    history: History,
    suite_of: Callable[[tuple[str, ...]], NightSuite],
    progress: Progress,
    workers: int = 1000,
) -> list[str]:
    """What a case costs besides itself, and how busy a scheduler of many workers is."""
    empty = 200
    progress(f"a night of {empty} cases that take no time, with dask")
    with farm(scratch / "few", 2) as few:
        suite = suite_of(tuple(f"e{i}" for i in range(empty)))
        took, _, _ = night_at(few, suite, history, nothing, 2)
    notes = [f"with dask a night takes for a case, beyond it: {took / empty * 1000:.1f} ms"]
    progress(f"{workers} workers, whose cases sleep {CASE_SECONDS} s")
    with farm(scratch / "many", workers, _PROCESSES) as many:
        suite = suite_of(tuple(f"s{i}" for i in range(3 * workers)))
        took, used, rows = night_at(many, suite, history, asleep, workers)
        idle = many.idle()
    each = used / len(rows)
    busy = idle + each * workers / CASE_SECONDS
    return [
        *notes,
        f"{workers} workers in {_PROCESSES} processes of this machine did {len(rows)} cases that "
        f"sleep {CASE_SECONDS} s in {took:.0f} s; their scheduler uses {idle:.0%} of a core when "
        f"they are idle, and {each * 1000:.1f} ms for a case: if none of them ever waited it were "
        f"{busy:.0%} busy",
    ]
