"""A Linux target's runner in QEMU's user mode: its command line, and how it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Target
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import GuestJob, pick
from tools.doubles import FakeFirmware
from tools.guest_doubles import ends_badly, guest_ending

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64-static")),
        reason="needs aarch64-linux-gnu-g++ and qemu-aarch64-static",
    ),
]


@pytest.fixture
def board() -> Target:
    return load_target("corstone-1000-a320", target_directories({}))


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> FakeFirmware:
    return ends_badly(tmp_path_factory.mktemp("firmware"))


def test_launch(board: Target, tmp_path: Path) -> None:
    """The CPU is always named, and the port is told that it is not by itself in its process."""
    chosen = pick(board, "qemu_user")
    elf = tmp_path / "executor_runner"
    job = GuestJob(elf, ("executor_runner", "-m", "program.pte"), tmp_path / "work", board.limits)
    launch = chosen.simulator.launch(chosen.target, chosen.require(), job)
    assert launch.argv[1:] == ("-cpu", "cortex-a35", str(elf), "-m", "program.pte")
    assert launch.environment == {"HIL_EMULATED": "1"}
    assert not launch.has_shell


def test_a_program_s_libraries_are_of_its_firmware(board: Target, tmp_path: Path) -> None:
    """Those of this machine are for another CPU."""
    chosen = pick(board, "qemu_user")
    elf, root = tmp_path / "executor_runner", tmp_path / "root"
    job = GuestJob(elf, ("executor_runner",), tmp_path / "work", board.limits, root=root)
    launch = chosen.simulator.launch(chosen.target, chosen.require(), job)
    assert launch.argv[1:] == ("-cpu", "cortex-a35", "-L", str(root), str(elf))
    assert launch.readable == (elf, root)


def test_every_record_says_what_stands_in(board: Target) -> None:
    core, process = board.differences(SimulatorName.QEMU_USER)
    assert core == "the board's CPU is a Cortex-A320; QEMU ran a Cortex-A35"
    assert process.startswith("there was no board and no guest: the runner was a process of")


def test_an_npu_needs_a_kernel_with_its_driver() -> None:
    """So a target with one has no such simulator."""
    target = load_target("corstone-1000-u85-256", target_directories({}))
    assert SimulatorName.QEMU_USER not in target.simulators.names


def ran(folder: Path, firmware: FakeFirmware, name: str) -> RunRecord:
    given = guest_ending(folder / "program", name)
    chosen = pick(given.target, "qemu_user")
    return run_case(
        Case("corstone-1000-a320", "add"), chosen, given.program, firmware, RunOptions()
    )  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    return tmp_path


def test_a_crash_has_its_place(home: Path, firmware: FakeFirmware) -> None:
    """The runner's own words, with the program's addresses, not the emulator's."""
    record = ran(home, firmware, "SEGFAULT")
    assert record.cause is not None
    assert (record.verdict, record.cause.kind) == (Verdict.FAULT, "process_crash")
    facts = record.cause.facts
    assert facts is not None
    assert "store" in facts["pc_symbol"]
    assert facts["pc_source"].startswith("linux.cpp:")


def test_a_crash_that_nobody_tells(home: Path, firmware: FakeFirmware) -> None:
    """QEMU ends itself with the program's signal."""
    record = ran(home, firmware, "UNTOLD_SEGFAULT")
    assert record.cause is not None
    assert (record.verdict, record.cause.kind) == (Verdict.FAULT, "process_crash")
    assert "signal 11" in record.cause.text


def test_a_runner_that_waits_for_ever(home: Path, firmware: FakeFirmware) -> None:
    record = ran(home, firmware, "SLEEPS")
    assert record.cause is not None
    assert (record.verdict, record.cause.kind) == (Verdict.HANG, "stall")
