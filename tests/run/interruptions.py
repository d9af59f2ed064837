"""Runs that are killed, or stopped and continued, at moments chosen at random.

Usage: python tests/run/interruptions.py HOW COUNT SEED FOLDER, where HOW is kill-run, kill-pytest,
kill-part or pause; FOLDER is empty. Prints what was wrong as JSON.

A killed run leaves no process and no temporary file, and the next run of the same case, in the
same state directory, passes and leaves no FIFO and no socket of either. A run of which a part was
killed, while it exports, builds or simulates, passes or says that it was not looked at. A run that
is paused, or whose simulator is, has its verdict all the same.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

CASES = ("corstone-300-m55/add", "corstone-300-u55-128/add")  # the second one has an NPU's FIFOs
INFRASTRUCTURE = 3  # exit status
GONE_SECONDS = 20.0  # for a process to be gone after its parent
LONGEST_PAUSE = 2.0  # far below the limit of a silence
# Before each run of which a part is killed: what is made anew, and about how long that takes.
FRESH = (((), 0.0), ((), 0.0), (("programs",), 10.0), (("firmware", "ccache"), 15.0))


@dataclass
class Ground:
    folder: Path
    rng: random.Random
    wrong: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)  # that were killed, and how the run ended
    longest: float = 1.0  # seconds that an undisturbed run takes

    def __post_init__(self) -> None:
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir(exist_ok=True)

    def start(self, argv: list[str]) -> subprocess.Popen[str]:
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            argv,
            env=environment,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def processes(self) -> dict[int, str]:
        """Those whose directory, command or environment names our folder."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            if int(process.name) == os.getpid():
                continue
            try:
                command = (process / "cmdline").read_bytes()
                known = command + (process / "environ").read_bytes()
                ours = str(self.folder).encode() in known + os.readlink(process / "cwd").encode()
            except OSError:
                continue
            if ours and command:
                found[int(process.name)] = command.replace(b"\0", b" ").decode("utf-8", "replace")
        return found

    def leftovers(self) -> Iterator[str]:
        until = time.monotonic() + GONE_SECONDS
        while self.processes() and time.monotonic() < until:
            time.sleep(0.05)
        yield from (f"orphan: {command[:200]}" for command in self.processes().values())
        for path in self.temporary.iterdir():
            if not path.name.startswith(("pytest-of-", "torchinductor_")):  # which they keep
                yield f"temporary file: {path.name}"
        yield from (f"shared memory: {p.name}" for p in Path("/dev/shm").glob("*hil*"))

    def named(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                yield f"{stat.filemode(mode)}: {path.relative_to(self.folder)}"

    def judge(self, what: str, case: str) -> None:
        """The next run of the case, which nobody disturbs."""
        self.wrong += [f"{what}: {left}" for left in self.leftovers()]
        for each in self.temporary.iterdir():  # said once
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        child = self.start(_run(case))
        said, _ = child.communicate()
        if child.returncode:
            self.wrong.append(f"{what}: the next run ends with {child.returncode}: {said[-500:]}")
        self.wrong += [f"{what}: the next run leaves {left}" for left in self.named()]
        shutil.rmtree(self.folder / ".hil" / "runs", ignore_errors=True)


def _run(case: str) -> list[str]:
    return [sys.executable, "-m", "harness", "run", *case.split("/")]


_TESTS = """
import pytest
from executorch_hil import require_pass

@pytest.mark.hil_cases(targets=["corstone-300-m55", "corstone-300-u55-128"], models=["add"])
def test_model(hil_run): require_pass(hil_run)
"""


def _pytest(_case: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-n", "2", "test_model.py"]


def kill(ground: Ground, number: int, command: Callable[[str], list[str]]) -> None:
    case = CASES[number % len(CASES)]
    after = ground.rng.uniform(0, ground.longest)
    child = ground.start(command(case))
    time.sleep(after)
    child.kill()
    child.communicate()
    ground.judge(f"killed after {after:.3f} s", case)


def kill_part(ground: Ground, number: int) -> None:
    """Anything that the harness has started. Nobody's model or source is to blame."""
    case = CASES[(number + number // len(FRESH)) % len(CASES)]
    fresh, seconds = FRESH[number % len(FRESH)]
    for kind in fresh:
        shutil.rmtree(ground.folder / ".hil" / "cache" / kind, ignore_errors=True)
    after = ground.rng.uniform(0, ground.longest + seconds)
    child = ground.start(_run(case))
    time.sleep(after)
    started = {pid: name for pid, name in ground.processes().items() if pid != child.pid}
    whom = ground.rng.choice(sorted(started) or [0])
    if whom:
        with suppress(ProcessLookupError):
            os.kill(whom, signal.SIGKILL)
    said, _ = child.communicate()
    what = f"killed after {after:.3f} s: {started.get(whom, 'nothing')[:120]}"
    ground.parts.append(f"{child.returncode} {what}")
    if child.returncode not in (0, INFRASTRUCTURE) and "SIGKILL" not in said:  # of an export
        ground.wrong.append(f"{what}: ends with {child.returncode}: {said[-500:]}")
    ground.judge(what, case)


def pause(ground: Ground, number: int) -> None:
    """Of the harness, or of what it started; a verdict other than PASS is wrong."""
    case = CASES[number % len(CASES)]
    after = ground.rng.uniform(0, ground.longest)
    seconds = ground.rng.uniform(0.05, LONGEST_PAUSE)
    child = ground.start(_run(case))
    time.sleep(after)
    started = [pid for pid in ground.processes() if pid != child.pid]
    whom = ground.rng.choice([[child.pid], started or [child.pid], [child.pid, *started]])
    for name in (signal.SIGSTOP, signal.SIGCONT):
        for pid in whom:
            try:
                os.kill(pid, name)
            except ProcessLookupError:
                continue
        if name is signal.SIGSTOP:
            time.sleep(seconds)
    said, _ = child.communicate()
    what = f"paused after {after:.3f} s for {seconds:.3f} s, {len(whom)} processes"
    if child.returncode:
        ground.wrong.append(f"{what}: ends with {child.returncode}: {said[-500:]}")
    ground.judge(what, case)


def main(how: str, count: int, seed: int, folder: Path) -> int:
    ground = Ground(folder, random.Random(seed))
    command = _pytest if how == "kill-pytest" else _run
    (folder / "test_model.py").write_text(_TESTS)
    for case in () if (folder / ".hil" / "cache").exists() else CASES:  # exports and builds
        ground.start(_run(case)).communicate()
    before = time.monotonic()
    child = ground.start(command(CASES[-1]))
    done = child.communicate()
    ground.longest = time.monotonic() - before
    if child.returncode:
        raise SystemExit(f"does not pass undisturbed: {done[0][-2000:]}")
    shutil.rmtree(ground.temporary)
    ground.temporary.mkdir()
    for number in range(count):
        if how == "pause":
            pause(ground, number)
        elif how == "kill-part":
            kill_part(ground, number)
        else:
            kill(ground, number, command)
    found = {"how": how, "seed": seed, "runs": count, "wrong": ground.wrong}
    print(json.dumps({**found, "parts": ground.parts}))
    return 1 if ground.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
