"""The store of exports: a later run has the verdicts that a run without it has, or exports again.

A small suite whose tests simulate on the real stand-in; it writes down which of its tests pytest
ran.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.suites import run, session
from harness.suites.results import Selection, SuiteReport
from harness.suites.run import SuiteOptions
from harness.suites.store import ExportStore, export_key
from harness.suites.suites import Suite
from harness.system.paths import cache_dir
from harness.system.progress import silent
from tests.sim.gdbstub import guests
from tests.suites.standin.conftest import U55

_GUEST = Path(__file__).parent / "standin" / "guest.c"
_OPS = """
import os, pathlib, subprocess, tempfile, pytest
RAN = pathlib.Path({ran!r})
def simulate(content):
    with tempfile.TemporaryDirectory() as name:
        cwd = pathlib.Path(name)
        (cwd / "in.bin").write_bytes(content)
        (cwd / ":semihosting-features").write_bytes(b"SHFB\\x01")  # the model passes the status on
        words = [{fvp!r}, "-C", "cpu0.semihosting-enable=1", "-C", f"cpu0.semihosting-cwd={{cwd}}"]
        elf = pathlib.Path(os.environ["EXECUTORCH_ROOT"], "arm_test/own/arm_executor_runner")
        subprocess.run([*words, "-a", elf], check=True, capture_output=True)
        return (cwd / "out.bin").read_bytes()
@pytest.mark.parametrize("n", range(1))
def test_sum(n):
    with RAN.open("a") as ran: ran.write(f"{{n}}\\n")
    given = bytes([n, n + 1, n + 2, n + 3])
    assert simulate(given) == bytes(byte + 5 for byte in given)
def test_compiles():
    with RAN.open("a") as ran: ran.write("compiles\\n")
@pytest.mark.xfail(reason="known")
def test_known(): assert simulate(b"abcd") == b"abcd"
"""
SIMULATING = ["0"]
EVERYTHING = [*SIMULATING, "compiles"]


class World(SimpleNamespace):
    """A home, a suite of one file and its runners."""

    folder: Path

    def run(self, add: int = 5, elf: Path | None = None, **options: Any) -> SuiteReport:
        (self.folder / "ran").write_text("")
        elf = elf or self.elf(add)
        return run.run_suite("own", SuiteOptions(elf=elf, workers=1, **options), silent)

    def elf(self, add: int, **more: object) -> Path:
        words = "".join(f"-{name}" for name in more)
        elf = self.folder / f"add{add}{words}.elf"
        return elf if elf.exists() else guests.bare(elf, _GUEST, ADD=add, **more)

    @property
    def ran(self) -> list[str]:
        return sorted((self.folder / "ran").read_text().split())

    @property
    def test_file(self) -> Path:
        return self.folder / "executorch" / "suite" / "ops" / "test_a.py"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    made = World(folder=folder)
    made.test_file.parent.mkdir(parents=True)
    made.test_file.write_text(_OPS.format(ran=str(folder / "ran"), fvp=U55))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(folder / "home"))
        package = folder / "executorch"
        patch.setattr("harness.suites.suites.executorch_package", lambda: package)
        suite = Suite("own", root="suite", runners=("arm_test/own",), target="none")
        patch.setattr(
            suite.__class__, "known_failures_file", property(lambda _: folder / "known.yaml")
        )
        (folder / "known.yaml").write_text("failures: {}\n")
        patch.setattr(run, "SUITES", {"own": suite})
        made.suite = suite
        made.first = made.run()
        made.first_ran = made.ran
        patch.setattr(run, "require_standins", lambda _: None)  # they start, as the first run shows
        yield made


def results(report: SuiteReport) -> dict[str, tuple[Any, ...]]:
    return {test.id: (test.result, test.cause, test.simulated) for test in report.tests}


def test_the_second_run_exports_nothing_and_has_the_same_results(world: World) -> None:
    """Two tests are simulated again, one has nothing to simulate; pytest does not even start."""
    assert world.first_ran == EVERYTHING
    assert world.first.summary["passed"] == 2
    assert world.first.summary["xfailed"] == 1
    assert (world.first.simulated_again, world.first.not_repeated) == (0, 0)
    again = world.run()
    assert world.ran == []
    assert (again.simulated_again, again.not_repeated) == (2, 1)
    assert not again.log.exists()
    assert results(again) == results(world.first)


def test_a_stored_test_is_simulated_and_not_believed(world: World) -> None:
    """With a runner that gives other outputs the tests run in full, and fail as they must."""
    report = world.run(add=6)
    assert world.ran == SIMULATING
    assert report.summary["failed"] == 1
    assert report.simulated_again == 0
    assert report.not_repeated == 1


def test_a_simulator_that_does_not_start_is_not_covered_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is taken from the store when its programs cannot be simulated; and that a test which
    is expected to fail could not simulate is not stored as a test that has nothing to simulate."""

    def break_them(workspace: Any) -> None:
        command = workspace.standin_folder / U55
        command.write_text(command.read_text().replace("exec ", "exec env PATH=/nowhere "))

    with monkeypatch.context() as patch:
        patch.setattr(run, "require_standins", break_them)
        report = world.run()
    assert report.summary["failed"] == 1
    assert report.simulated_again == 0
    assert world.run().not_repeated == 1


@pytest.mark.parametrize(
    ("other", "phases"), [({}, 3), ({"ALSO": '"a complaint"'}, 0), ({"STATUS": 3}, 0)]
)
def test_equal_outputs_are_not_enough(world: World, other: dict[str, object], phases: int) -> None:
    """A suite may look at the console and at the status; where these differ the test runs."""
    store = ExportStore.of("own", export_key(world.suite, None))
    recording = store.recording("ops/test_a.py::test_sum[0]")
    assert recording is not None
    workspace = session.prepare(world.suite, world.elf(5, **other))
    assert len(list(run.replay([recording], workspace, 1, silent))) == phases


@pytest.mark.thorough
def test_a_test_whose_recording_is_damaged_runs_and_is_recorded_again(world: World) -> None:
    world.run()
    recording = ExportStore.of("own", export_key(world.suite, None)).recording(
        "ops/test_a.py::test_sum[0]"
    )
    assert recording is not None
    (console,) = recording.simulations[0].log.parent.glob("*.log")
    console.write_bytes(console.read_bytes() + b" ")
    assert world.run().simulated_again == 1
    assert world.ran == ["0"]
    assert world.run().simulated_again == 2


def test_without_the_cache_every_test_is_exported(world: World) -> None:
    report = world.run(use_store=False)
    assert world.ran == EVERYTHING
    assert (report.simulated_again, report.not_repeated) == (0, 0)


@pytest.mark.thorough
def test_random_inputs_are_drawn_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SEED", "RANDOM")
    for _ in range(2):
        world.run()
        assert world.ran == EVERYTHING


def test_a_selection_of_stored_tests_needs_no_pytest(world: World) -> None:
    """A shard of a selection whose collection is stored; another keyword only pytest can match."""
    shard = world.run(selection=Selection(shard=(1, 2)))
    assert (world.ran, len(shard.tests)) == ([], 2)
    world.run(selection=Selection(keyword="sum"))
    assert world.ran == SIMULATING
    world.run(selection=Selection(keyword="sum"))
    assert world.ran == []


def test_a_run_that_was_killed_is_continued(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started again, it simulates what the killed one had exported."""

    class Killed(BaseException):
        pass

    def killed(*arguments: Any) -> list[dict[str, Any]]:
        phases = session.run_session(*arguments)
        assert len(phases) > 3
        raise Killed

    shutil.rmtree(cache_dir("suite-exports"))
    with monkeypatch.context() as patch:
        patch.setattr(run, "run_session", killed)
        with pytest.raises(Killed):
            world.run()
    assert world.ran == EVERYTHING
    again = world.run()
    assert world.ran == []
    assert (again.simulated_again, again.not_repeated) == (2, 1)
    assert results(again) == results(world.first)


@pytest.mark.thorough
def test_a_change_in_the_middle_of_a_run_stores_nothing(world: World) -> None:
    file = world.test_file
    text = file.read_text()
    file.write_text(f"{text}\ndef test_writes():\n    open({str(file)!r}, 'a').write('#')\n")
    world.run()
    world.run()
    assert set(EVERYTHING) <= set(world.ran)
    file.write_text(text)
