"""Planted firmware on the real QEMU: every ending of a guest gets its name and its place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.judge.rules import Cause
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from harness.system.confine import why_not
from tools.doubles import (
    double_program,
    planted_endings,
    planted_firmware,
)

TABLE = planted_endings()
needs_bwrap = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    return tmp_path


LIMITS = Limits(host=5.0, stall=1.0)


def planted(
    folder: Path, ending: str, limits: Limits = LIMITS, words: str = "", status: int = 1
) -> RunRecord:
    """Build, run and judge; `limit_factor` in a hil.toml scales the limits on a busy machine."""
    board = load_target("corstone-300-m55", target_directories({}))
    target = replace(board, limits=limits)
    program = double_program(folder / "program")
    firmware = planted_firmware(folder, ending, words=words, status=status)
    chosen = pick(target, "qemu")
    return run_case(Case(target.name, "add"), chosen, program, firmware, RunOptions())  # type: ignore[arg-type]


def cause_of(record: RunRecord) -> Cause:
    assert record.cause is not None
    return record.cause


def rows() -> list[object]:
    """A command of the guest really runs where nothing confines it, and a status of 256 is 0."""
    walled = ("RUNS_COMMAND", "LEAVES_256")
    return [pytest.param(e, marks=needs_bwrap if e in walled else ()) for e in TABLE]


@pytest.mark.parametrize("ending", rows())
def test_ending_has_its_verdict(home: Path, ending: str) -> None:
    record = planted(home, ending)
    cause = record.cause
    assert (record.verdict.name, cause and cause.kind) == TABLE[ending], cause


# What a guest may write or leave with to look like a simulator that failed: (words, status, kind).
IMPERSONATED = (
    ("hil: the board cannot be driven: x", 1, "board_unreachable"),
    ("hil: the serial line broke off: x", 1, "board_lost"),
    ("hil: the board did not answer within 1 s (0 bytes came", 1, "board_silent"),
    ("hil: the board runs another program image (none)", 1, "wrong_program"),
    ("hil: the guest refuses the login of root", 1, "login_refused"),
    ("Login incorrect", 1, "login_refused"),
    ("License checkout failed", 1, "licence"),
    ("You must accept the EULA first", 1, "eula"),
    ("E [executorch:p.cpp:1] s0-0.bin: no space left on the device", 1, "disk_full"),
    ("qemu-system-arm: unsupported machine type", 1, "simulator_error"),
    ("bwrap: execvp: No such file or directory", 1, "simulator_error"),
    ("Error: FVP_MPS3: mps3_board.uart0: cannot open file", 1, "simulator_error"),
    ("Error: (E549) uncaught exception: Cannot allocate memory", 1, "host_limits"),
    ("x: error while loading shared libraries: libx.so.1: cannot open", 127, "library_missing"),
    ("VFS: Unable to mount root fs on unknown-block", 1, "no_root_file_system"),
    ("", 126, "exit_status"),
    ("", 127, "exit_status"),
    ("", 137, "exit_status"),
    ("", 143, "exit_status"),
)


@needs_bwrap
@pytest.mark.parametrize(("words", "status", "kind"), IMPERSONATED)
@pytest.mark.parametrize("ending", ["SPEAKS", "SPEAKS_LATE"])
def test_a_guest_cannot_blame_the_simulator(
    home: Path, ending: str, words: str, status: int, kind: str
) -> None:
    """A night would take its failure for one of the infrastructure, and forget it."""
    record = planted(home, ending, words=f"{words}\n" if words else "", status=status)
    cause = cause_of(record)
    assert (record.verdict.name, cause.kind) == ("FAULT", kind), cause.text
    assert record.verdict.product_failure
    assert judge_again(Path(str(record.run_dir))).judgement == record.judgement


@pytest.mark.thorough
def test_a_line_without_an_end_is_cut(home: Path) -> None:
    """It was a console of 257 MB, and 555 MB of memory."""
    record = planted(home, "ONE_LINE", Limits(host=120.0, stall=30.0))
    cause = cause_of(record)
    assert (record.verdict.name, cause.kind) == ("FAULT", "output_limit")
    assert "a line without an end" in cause.text
    console = Path(str(record.run_dir)) / "console.log"
    assert 32 << 20 < console.stat().st_size < 34 << 20


def test_a_fault_names_the_function_that_called(home: Path) -> None:
    """The pc of a null call is 0; its caller is in lr, with symbol and source line."""
    facts = cause_of(planted(home, "NULL_CALL")).facts
    assert facts is not None
    assert facts["pc"] == "0x00000000"
    assert facts["lr_symbol"].startswith("work+")
    assert facts["lr_source"].startswith("planted.c:")


def test_a_stack_overflow_shows_in_cfsr(home: Path) -> None:
    facts = cause_of(planted(home, "STACK_OVERFLOW")).facts
    assert facts is not None
    assert int(facts["cfsr"], 16) & (1 << 20)


@pytest.mark.parametrize(
    ("ending", "function"), [("ENDLESS_LOOP", "spin"), ("WFI_FOR_EVER", "wait")]
)
def test_a_hang_names_where_it_hangs(home: Path, ending: str, function: str) -> None:
    """pc, symbol and source of the CPU at the moment the limit came, and the calls above it."""
    cause = cause_of(planted(home, ending))
    assert cause.facts is not None
    assert cause.facts["pc_symbol"].split("+")[0] == function
    assert cause.facts["pc_source"].startswith("planted.c:")
    assert function in cause.text
    frames = [frame.split("+")[0] for frame in cause.facts["backtrace"]]
    assert frames[:2] == ["work", "run"] or frames[:1] == ["run"], frames


def test_a_silent_busy_loop_ends_by_its_instructions(home: Path) -> None:
    """Long before the time is up: 60 s of a host that needs less than one for so many."""
    limits = Limits(host=60.0, stall=4.0, instructions=20_000_000)
    cause = cause_of(planted(home, "ENDLESS_LOOP", limits))
    assert cause.kind == "stall"
    assert cause.facts is not None
    assert cause.facts["instructions"] > limits.instructions
    assert cause.facts["pc_symbol"].split("+")[0] == "spin"
    assert f"no output in {cause.facts['instructions']:,} instructions" in cause.text


@needs_bwrap
def test_reaching_for_a_file_of_the_host_is_reported(home: Path) -> None:
    (home / "secret").write_text("hunter2")
    record = planted(home, "LOOKS_OUTSIDE")
    assert record.simulator is not None
    assert record.simulator.confined
    facts = cause_of(record).facts
    assert facts is not None
    assert (facts["path"], "outside" in facts) == ("/etc/passwd", True)
    said = (Path(str(record.run_dir)) / "console.log").read_text()
    assert said.count("Could not open file") == 2


@needs_bwrap
def test_a_host_command_is_not_run(home: Path) -> None:
    record = planted(home, "RUNS_COMMAND")
    assert record.simulator is not None
    assert record.simulator.confined
    assert not (Path(str(record.run_dir)) / "work" / "pwned").exists()
    assert "refused to run a command" in cause_of(record).text
