"""A scheduler of dask.distributed and its workers, as processes with homes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.clone import project_root

_DASK = ("setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m")  # with the tests
_FAST = {
    "DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_TIMEOUT": "3s",
    "DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_VALIDATION_INTERVAL": "1s",
}


def until(what: Callable[[], object], seconds: float = 120) -> None:
    for _ in range(int(seconds / 0.05)):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


@dataclass
class Process:
    """``home``: its HIL_HOME."""

    process: subprocess.Popen[bytes]
    home: Path
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def has_mapped(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()


class Farm:
    """``url`` of the scheduler. Whoever is in it is killed in the end."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.members: list[Process] = []
        address_file = folder / "scheduler.json"
        words = (
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            "--scheduler-file",
            address_file,
        )
        self.scheduler = self._start("scheduler", words, **environment)
        until(lambda: address_file.exists() and address_file.read_text().endswith("}"))
        self.url: str = json.loads(address_file.read_text())["address"]

    def home(self, name: str) -> Path:
        return self.folder / f"home-{name}"

    def worker(self, name: str, **environment: str) -> Process:
        """One that has answered the scheduler."""
        one = self._start(
            "worker",
            (
                self.url,
                "--nthreads",
                "1",
                "--no-nanny",
                "--name",
                name,
                "--no-dashboard",
                "--local-directory",
                self.folder / name,
            ),
            name,
            **environment,
        )
        until(lambda: "Registered to" in one.log.read_text())
        return one

    def _start(
        self, kind: str, words: tuple[object, ...], name: str = "", **environment: str
    ) -> Process:
        name = name or kind
        home = self.home(name)
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*_DASK, f"distributed.cli.dask_{kind}", *map(str, words)],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.folder,  # which Python would look into first
                env={
                    **os.environ,
                    **_FAST,
                    "HIL_HOME": str(home),
                    "PYTHONPATH": str(project_root()),
                    **environment,
                },
            )
        self.members.append(Process(process, home, log))
        return self.members[-1]


@contextmanager
def farm(folder: Path, **environment: str) -> Iterator[Farm]:
    """``environment``: of the scheduler."""
    made = Farm(folder, **environment)
    try:
        yield made
    finally:
        for one in reversed(made.members):
            one.kill()
