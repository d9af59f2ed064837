"""Every way in which a simulator can end has a name: the table, provoked row by row."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.firmware.source import source_named
from harness.run.directory import SealBroken
from harness.run.execution import execute
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.system.confine import REQUIRE, why_not
from tools.doubles import double_firmware, endings

TABLE = endings()
TARGET = "corstone-300-m55"
Double = Callable[..., RunRecord]


@pytest.mark.parametrize("ending", TABLE)
def test_ending_has_its_verdict(double: Double, ending: str) -> None:
    """Verdict and cause, and the same again offline from the run directory."""
    record = double(ending)
    cause = record.cause
    assert (record.verdict.name, cause and cause.kind) == TABLE[ending], cause
    assert record.run_dir is not None
    assert judge_again(Path(record.run_dir)).judgement == record.judgement


@pytest.mark.parametrize("ending", ["parameter_absent", "exception", "checkout_failed"])
def test_the_simulators_last_words_are_in_the_cause(double: Double, ending: str) -> None:
    """No table knows them, so the reader gets them as they are."""
    cause = double(ending).cause
    assert cause is not None
    words = {
        "parameter_absent": "'mps3_board.uart9.out_file' does not exist",
        "exception": "what():  Error: simulation aborted",
        "checkout_failed": "feature SystemC_Cortex-M55, result: -15",
    }
    assert words[ending] in cause.text
    assert "ended by itself" in cause.text


def test_the_line_that_proves_it(double: Double) -> None:
    """The first cause is named with its line, not the assertion that followed from it."""
    record = double("allocator_too_small")
    cause = record.cause
    assert cause is not None
    assert cause.line is not None
    line = (Path(str(record.run_dir)) / "console.log").read_text().splitlines()[cause.line - 1]
    assert "6144000B requested" in line
    assert cause.facts is not None
    assert (cause.facts["needed"], cause.facts["had"]) == ("6144000", "2000")


def test_a_limit_after_completion_is_a_note(double: Double) -> None:
    (note,) = (n for n in double("passes_then_limit").notes if "limit" in n)
    assert note.startswith("ended by the model's own limit after the runner had completed")


def test_nothing_of_a_run_is_left_behind(double: Double) -> None:
    """Processes that left the session or ignore SIGTERM are gone when the verdict is there."""
    for ending in ("keeps_pipe_open", "ignores_sigterm", "spins"):
        double(ending)
    ours = [p for p in Path("/proc").iterdir() if p.name.isdigit() and _parent(p) == os.getpid()]
    assert [p.name for p in ours if b"FVP_" in _command(p)] == []


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_files_outside_the_run_are_not_there(double: Double, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    record = double("looks_outside")
    said = (Path(str(record.run_dir)) / "console.log").read_text()
    assert record.simulator is not None
    assert record.simulator.confined
    assert "hunter2" not in said
    assert "root:" not in said
    assert said.count("No such file") == 3


def test_an_unknown_parameter_is_refused(double: Double, tmp_path: Path) -> None:
    """As a model would, whatever it listed before: it is still no failure of the program."""
    double("passes")
    known = tmp_path / "fvp-passes" / "parameters"
    known.write_text(known.read_text().replace("mps3_board.uart0.out_file\n", ""))
    record = double("passes")
    cause = record.cause
    assert cause is not None
    assert (record.verdict.name, cause.kind) == ("INFRA", "simulator_error")
    assert "unknown parameter 'mps3_board.uart0.out_file'" in cause.text


def test_outputs_of_an_earlier_run_are_not_taken(double: Double) -> None:
    """The right outputs lie in the directory of the run before; this run wrote none."""
    assert double("passes").verdict.passed
    record = double("no_output")
    cause = record.cause
    assert cause is not None
    assert (record.verdict.name, cause.kind) == ("NO_VERDICT", "output_missing")


def test_a_stale_output_in_the_run_directory_stops_the_run(
    double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right outputs that were there before prove nothing, so such a directory is not used."""
    run_dir = tmp_path / "used"
    (run_dir / "work").mkdir(parents=True)
    for name in ("s0-0.bin", "s1-0.bin"):
        (run_dir / "work" / name).write_bytes((tmp_path / "program" / "out0.bin").read_bytes())
    monkeypatch.setattr("harness.run.pipeline.new_run_dir", lambda _label: run_dir)
    with pytest.raises(InfraError, match="exists"):
        double("no_output")


def test_a_console_that_lost_its_end_is_no_pass_any_more(double: Double) -> None:
    """Every line that is left of it is good, to the end marker."""
    record = double("passes")
    run_dir = Path(str(record.run_dir))
    console = run_dir / "console.log"
    said = console.read_bytes()
    assert record.verdict.passed
    console.write_bytes(said[: said.rindex(b"\nInfo: /OSCI") + 1])
    with pytest.raises(SealBroken, match=r"console\.log was changed after the run"):
        judge_again(run_dir)


@pytest.fixture
def no_walls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine without bubblewrap, where a process may outlive its simulator."""
    monkeypatch.setattr("harness.system.confine._probe", lambda: (False, "planted: none"))
    monkeypatch.setenv(REQUIRE, "0")  # which CI would do
    yield
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(tmp_path):
                os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.usefixtures("no_walls")
def test_a_console_that_somebody_keeps_open_is_no_pass(double: Double) -> None:
    """What they would still have written, a fault perhaps, is not known."""
    record = double("keeps_pipe_open")
    assert (record.verdict, record.cause and record.cause.kind) == ("NO_VERDICT", "console_cut")
    again = judge_again(Path(str(record.run_dir)))
    assert again.judgement == record.judgement


@pytest.mark.usefixtures("no_walls")
def test_executing_says_that_the_console_was_cut(
    double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is judged there, but its outputs are not handed over as of a whole run."""
    double("keeps_pipe_open")  # is installed by this
    firmware = double_firmware(tmp_path)
    monkeypatch.setattr(type(source_named("bundled")), "build", lambda *_: firmware)
    program = tmp_path / "program" / "program.pte"
    (done,) = execute(
        TARGET, program, [program], tmp_path / "out", RunOptions("fvp"), lambda _said: None
    )
    assert (done.verdict, done.cause and done.cause.kind) == ("NO_VERDICT", "console_cut")
    assert done.outputs == ()


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
