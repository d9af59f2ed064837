"""Protects the cache of a suite: it gives the verdicts that a run without it gives, or nothing.

A small suite whose tests simulate on the real stand-in; it says which of its tests were run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.conformance import run
from harness.conformance.model import Report, Selection
from harness.conformance.notes import TESTS, path_of, read_note
from harness.conformance.suites import Suite
from harness.system.progress import silent
from tests.attend import guests
from tests.standin.conftest import U55

_GUEST = Path(__file__).parents[1] / "standin" / "guest.c"
_OPS = """
import os, pathlib, subprocess, tempfile, pytest
RAN = pathlib.Path({ran!r})
def simulate(content):
    with tempfile.TemporaryDirectory() as name:
        cwd = pathlib.Path(name)
        (cwd / "in.bin").write_bytes(content)
        words = [{fvp!r}, "-C", "cpu0.semihosting-enable=1", "-C", f"cpu0.semihosting-cwd={{cwd}}"]
        elf = pathlib.Path(os.environ["EXECUTORCH_ROOT"], "arm_test/own/arm_executor_runner")
        subprocess.run([*words, "-a", elf], check=True, capture_output=True)
        return (cwd / "out.bin").read_bytes()
@pytest.mark.parametrize("n", range(2))
def test_sum_{which}(n):
    with RAN.open("a") as ran: ran.write(f"{which}{{n}}\\n")
    given = bytes([n, n + 1, n + 2, n + 3])
    assert simulate(given) == bytes(byte + 5 for byte in given)
def test_compiles_{which}():
    with RAN.open("a") as ran: ran.write("{which}\\n")
@pytest.mark.xfail(reason="known")
def test_known_{which}(): assert simulate(b"abcd") == b"abcd"
"""


class World(SimpleNamespace):
    """A home, a suite of two files and its runners."""

    folder: Path

    def run(self, add: int = 5, elf: Path | None = None, **how: Any) -> Report:
        (self.folder / "ran").write_text("")
        return run.conform("own", elf or self.elf(add), Selection(), silent, workers=1, **how)

    def elf(self, add: int, **more: object) -> Path:
        words = "".join(f"-{name}" for name in more)
        elf = self.folder / f"add{add}{words}.elf"
        return elf if elf.exists() else guests.bare(elf, _GUEST, ADD=add, **more)

    @property
    def ran(self) -> list[str]:
        return (self.folder / "ran").read_text().split()

    def test_file(self, which: str) -> Path:
        return self.folder / "executorch" / "suite" / "ops" / f"test_{which}.py"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    made = World(folder=folder)
    made.test_file("a").parent.mkdir(parents=True)
    for which in "ab":
        text = _OPS.format(ran=str(folder / "ran"), fvp=U55, which=which)
        made.test_file(which).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(folder / "home"))
        package = folder / "executorch"
        patch.setattr("harness.conformance.suites.executorch_package", lambda: package)
        suite = Suite("own", root="suite", runners=("arm_test/own",), target="none")
        patch.setattr(suite.__class__, "expectations", property(lambda _: folder / "known.yaml"))
        (folder / "known.yaml").write_text("{}\n")
        patch.setattr(run, "SUITES", {"own": suite})
        made.first = made.run()
        made.first_ran = made.ran
        yield made


def results(report: Report) -> dict[str, tuple[Any, ...]]:
    return {v.id: (v.result, v.cause, v.simulated, v.bit_exact) for v in report.verdicts}


def test_the_second_run_exports_nothing_and_says_the_same(world: World) -> None:
    """Each test was simulated again; pytest was not even started."""
    assert sorted(world.first_ran) == sorted(["a", "b", *(f"{w}{n}" for w in "ab" for n in "01")])
    assert world.first.summary == {
        "passed": 6, "failed": 0, "xfailed": 2, "skipped": 0, "unsupported": 0,
    }  # fmt: skip
    again = world.run()
    assert world.ran == []
    assert again.from_cache == 8
    assert not again.log.exists()
    assert results(again) == results(world.first)


def test_a_runner_with_a_bug_is_not_covered_up(world: World) -> None:
    """What came to another result is run in full, and fails as it does without the cache."""
    report = world.run(add=6)
    assert sorted(world.ran) == sorted(f"{w}{n}" for w in "ab" for n in "01")
    assert report.summary["failed"] == 4
    assert report.from_cache == 2  # what simulates nothing


@pytest.mark.parametrize("other", [{"ALSO": '"a complaint"'}, {"STATUS": 3}], ids=["says", "ends"])
def test_the_same_bytes_are_not_enough(world: World, other: dict[str, object]) -> None:
    """A suite may look at the console and at the status; where these differ the test is run."""
    world.run(elf=world.elf(5, **other))
    assert sorted(world.ran) == sorted(f"{w}{n}" for w in "ab" for n in "01")


def test_a_note_that_was_changed_is_not_believed(world: World) -> None:
    """Its test is run, and noted again."""
    world.run()
    (folder,) = (world.folder / "home" / "cache" / "suites").glob("own+*")
    note = path_of(folder, "ops/test_a.py::test_sum_a[0]")
    text = note.read_text()
    assert (folder / TESTS).is_dir()
    note.write_text(text.replace('"status": 0', '"status": 1'))
    assert read_note(note) is None
    assert world.run().from_cache == 7
    assert world.ran == ["a0"]
    assert read_note(note) is not None


def test_only_what_a_change_can_affect_is_run(world: World) -> None:
    """Nothing when nothing has changed; what only compiles when a runner has; of a file of tests
    that has changed all, and those of other files are left out, each with its reason."""
    world.run()
    nothing = world.run(changed=True)
    assert (world.ran, nothing.verdicts, sum(nothing.left_out.values())) == ([], (), 8)
    assert nothing.exit_code == 0
    another = world.run(elf=guests.bare(world.folder / "another.elf", _GUEST, ADD=5, STATUS=1),
                        changed=True)  # fmt: skip
    assert (world.ran, another.from_cache, sum(another.left_out.values())) == ([], 6, 2)
    same = world.run(changed=True)  # the first runner again
    assert (same.from_cache, sum(same.left_out.values())) == (0, 8)
    file = world.test_file("a")
    file.write_text(file.read_text() + "# changed\n")
    one = world.run(changed=True)
    assert sorted(world.ran) == ["a", "a0", "a1"]
    assert {v.id.partition("::")[0] for v in one.verdicts} == {"ops/test_a.py"}
    assert sum(one.left_out.values()) == 4
    (world.folder / "executorch" / "suite" / "ops" / "conftest.py").write_text("")
    everything = world.run(changed=True)  # nobody knows what a new module does
    assert (len(world.ran), everything.left_out) == (6, {})
