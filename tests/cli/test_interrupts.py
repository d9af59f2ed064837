"""Ctrl-C, SIGTERM and SIGKILL at random moments of the verbs that work for long: every process of
them is gone, nothing half written is used, and the next run is right."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.core.verdict import ExitCode
from harness.firmware.zephyr.init import MODULES
from tests.firmware.executorch.small import KERNEL, commit, edit, git, small_checkout
from tests.firmware.zephyr_remote import make_remote
from tests.link.plants import PLANTS, Project
from tests.system.test_cache_seals import unsealed
from tests.thorough import amount

SEED = 52
BOARD = "corstone-300-m55"
# Of each verb: signals, and a run to the end, in each. More where a run is short.
ROUNDS = {"link_reduce": amount(1, 12), "zephyr_init": amount(1, 12), "gate": amount(1, 8)}
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL)
MARK = "HIL_TEST_INTERRUPTS"
# Until Python has our handler a signal ends it as any program; and Python itself ends by SIGINT
# when it was in an ``exec``, as that of a dataclass, whatever we made of the KeyboardInterrupt.
BEFORE_OURS = (-signal.SIGINT, -signal.SIGTERM)

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

Answer = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Work:
    """One verb. ``answer``: what must be equal to that of a run which nobody disturbed, of its
    JSON. ``forget``: removes what was made, so that there is something to do again. ``out``: the
    folder that it writes, and does not write twice."""

    words: tuple[str, ...]
    answer: Answer
    forget: Callable[[Path], None]
    environment: Mapping[str, str] = field(default_factory=dict)
    out: Path | None = None


def forget_some(draw: random.Random) -> Callable[[Path], None]:
    """Of what a run caches, one kind or all of it."""

    def forget(home: Path) -> None:
        kinds = ("programs", "firmware", "npu-kernel", "schemas", "executorch")
        for kind in draw.choice([kinds, ("programs",), ("firmware",), ()]):
            shutil.rmtree(home / "cache" / kind, ignore_errors=True)

    return forget


def verdicts(said: dict[str, Any]) -> object:
    return sorted((record["case"], record["verdict"]) for record in said["cases"])


def run(folder: Path, draw: random.Random) -> Work:
    models = ("add", "linear", "softmax")
    return Work(("run", BOARD, *models), verdicts, forget_some(draw))


def gate(folder: Path, draw: random.Random) -> Work:
    subjects = (f"{BOARD}/add", f"{BOARD}/softmax")
    return Work(("gate", *subjects), lambda said: said["gates"], forget_some(draw))


def nightly(folder: Path, draw: random.Random) -> Work:
    suite = folder / "suite.yaml"
    suite.write_text(f"cases:\n  - {{targets: [{BOARD}], models: [add, linear]}}\n")
    history = folder / "h.db"
    words = ("nightly", str(suite), "--night", "n", "--history", f"sqlite:///{history}", "-j", "2")

    def forget(home: Path) -> None:
        forget_some(draw)(home)
        history.unlink(missing_ok=True)

    return Work(words, lambda said: [(c["case"], c["verdict"]) for c in said["cases"]], forget)


def suite(folder: Path, draw: random.Random) -> Work:
    def forget(home: Path) -> None:
        shutil.rmtree(home / "cache" / "suite-exports", ignore_errors=True)

    words = ("suite", "cortex-m", "-k", "test_mul and scalar_tensor", "--workers", "2")
    return Work(words, lambda said: said["summary"], forget)


def bisect(folder: Path, draw: random.Random) -> Work:
    root, parts = small_checkout(folder)
    good = git(root, "rev-parse", "HEAD")
    edit(root / KERNEL, "pairs.out + r * pairs.row, pairs.row)", "pairs.out, pairs.row - 1)")
    commit(root, "add: tidied up")
    (root / "docs" / "README.md").write_text("more\n")
    commit(root, "docs")
    given = [f"--part={name}={place}" for name, place in parts.items()]
    words = ("bisect", BOARD, "qadd", "--good", good, "-C", str(root), *given)
    return Work(words, lambda said: said["first_bad"]["commit"]["subject"], forget_some(draw))


def link_reduce(folder: Path, draw: random.Random) -> Work:
    plant = next(plant for plant in PLANTS if plant.name == "missing_weak_default")
    project = Project(plant, folder / "source", folder / "build")
    assert project.configure_and_build(fixed=False).returncode != 0
    out = folder / "reduced"

    def forget(home: Path) -> None:
        shutil.rmtree(out, ignore_errors=True)

    words = ("link", "reduce", str(project.build), "-o", str(out))
    return Work(words, lambda said: sorted(said["objects"]), forget, out=out)


def zephyr_init(folder: Path, draw: random.Random) -> Work:
    remote, workspace = make_remote(folder / "remote"), folder / "ws"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def forget(home: Path) -> None:
        shutil.rmtree(workspace, ignore_errors=True)

    def answer(said: dict[str, Any]) -> object:
        folders = ("zephyr", *(f"modules/{name}" for name in MODULES))
        state = [git(workspace / folder, "status", "--porcelain", "-b") for folder in folders]
        return state, [git(workspace / folder, "rev-parse", "HEAD") for folder in folders]

    words = ("zephyr", "init", str(workspace), "--url", remote.as_uri(), "--no-packages")
    return Work(words, answer, forget, {"PATH": path})


MADE = (run, gate, nightly, suite, bisect, link_reduce, zephyr_init)
WORKS = {made.__name__: made for made in MADE}
DAILY = ("run", "link_reduce")


@pytest.mark.parametrize(
    "verb",
    [pytest.param(n, marks=[] if n in DAILY else pytest.mark.thorough) for n in WORKS],
)
def test_whatever_is_interrupted_is_gone_and_right_the_next_time(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {SEED}")
    draw = random.Random(f"{SEED} {verb}")
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    home = tmp_path / "home"
    work = WORKS[verb](tmp_path, draw)
    disturbed = Disturbed(work, home, verb)
    began = time.monotonic()
    right, whole = disturbed.undisturbed(), time.monotonic() - began
    met, rounds = 0, ROUNDS.get(verb, amount(1, 5))
    for _ in range(rounds):
        work.forget(home)
        left = whole
        for number in draw.sample(STOPS, len(STOPS)):
            moment = draw.uniform(0.0, left)
            if disturbed.stopped(number, moment):
                met += 1
            else:
                left = moment  # it ended before
            assert_nothing_half_written(home)
        assert disturbed.undisturbed() == right
    print(f"{met} of {rounds * len(STOPS)} signals met a running {verb}")


@dataclass(frozen=True)
class Disturbed:
    work: Work
    home: Path
    name: str

    def begun(self) -> subprocess.Popen[bytes]:
        """A folder that was written is whole, and taken away: nobody writes it twice."""
        if self.work.out is not None and self.work.out.exists():
            assert (self.work.out / "failure.json").is_file(), "half of a folder"
            self.work.forget(self.home)
        words = [sys.executable, "-m", "harness", *self.work.words, "--json"]
        around = {**os.environ, "HIL_HOME": str(self.home), "CI": "", MARK: self.name}
        self.home.mkdir(exist_ok=True)
        with (
            (self.home.parent / "out").open("wb") as out,
            (self.home.parent / "err").open("wb") as err,
        ):
            return subprocess.Popen(
                words,
                env={**around, **self.work.environment},
                cwd=self.home.parent,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def undisturbed(self) -> object:
        status = self.begun().wait(900)
        assert status in (ExitCode.PASSED, ExitCode.FAILED), (self.home.parent / "err").read_text()
        text = (self.home.parent / "out").read_text()
        assert text, (self.home.parent / "err").read_text()
        return self.work.answer(json.loads(text))

    def stopped(self, number: signal.Signals, moment: float) -> bool:
        """Whether it was at work then. SIGINT goes to its group, as a terminal sends it."""
        process = self.begun()
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            pass
        else:
            return False
        sent = time.monotonic()
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        status = process.wait(60)
        ended = time.monotonic() - sent
        assert gone(self.name), "something of it is still at work"
        print(f"{self.name}: {number.name} at {moment:.2f} s: status {status}", end="")
        print(f" after {ended:.2f} s, all gone after {time.monotonic() - sent:.2f} s")
        finished = status in (
            ExitCode.PASSED,
            ExitCode.FAILED,
        )  # it was done before the signal came
        expected = (-number,) if number is signal.SIGKILL else (ExitCode.INTERRUPTED, *BEFORE_OURS)
        assert finished or status in expected, (self.home.parent / "err").read_text()
        if status == ExitCode.INTERRUPTED:
            said = (self.home.parent / "err").read_text().splitlines()
            assert said[-1] == "hil: interrupted"
            assert (self.home.parent / "out").read_text() == ""
        return not finished


def gone(name: str) -> bool:
    """Whether nobody is left who inherited the environment; a killed process takes a moment."""
    wanted = f"{MARK}={name}".encode()
    for _ in range(1000):
        if not any(wanted in environment(entry) for entry in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.01)
    return False


def environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def assert_nothing_half_written(home: Path) -> None:
    """An entry of the cache is whole or has no seal; a record can be read or is not there."""
    for record in home.glob("runs/*/record.json"):
        json.loads(record.read_text())
    for entry in home.glob("cache/**/entry.json"):
        assert not [name for name in unsealed(home / "cache") if str(entry.parent) in name]
