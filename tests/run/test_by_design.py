"""Protects the judgement of outputs that have two definitions: which one is expected, what a
checkout's runner may give because a difference has a name, and what it may not; and the bundled
runner never may.

The firmware is planted and writes its known outputs, on the real QEMU.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.core.verdict import Verdict
from harness.export.program import InputSet, Program
from harness.firmware.names import source_names
from harness.firmware.source import Arithmetic, FirmwareSource, source_named
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from tools.doubles import double_program, planted_firmware

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    # The planted firmware has no checkout whose schema could be compared.
    monkeypatch.setattr("harness.run.pipeline.require_fit", lambda *_: ())


def program(folder: Path, *, expected: float, by_design: float) -> Program:
    """What the firmware writes is right at 0; each definition may be off by so many LSB."""
    plain = double_program(folder)
    known = (folder / "out0.bin").read_bytes()

    def off(steps: float) -> bytes:
        first, *rest = struct.unpack("<4f", known)
        return struct.pack("<4f", first + 0.25 * steps, *rest)

    sets = []
    for k in range(2):
        (folder / f"expected{k}.bin").write_bytes(off(expected))
        (folder / f"design{k}.bin").write_bytes(off(by_design))
        sets.append(InputSet((f"in{k}.bin",), (f"expected{k}.bin",), (f"design{k}.bin",)))
    return replace(plain, sets=tuple(sets), by_design=("half-away",))


def run(
    folder: Path, source: FirmwareSource, what: Program, oracle: Arithmetic | None = None
) -> RunRecord:
    target = load_target("corstone-300-m55", target_directories({}))
    firmware = planted_firmware(folder, "PASSES", source.name)
    case = Case(target.name, "add")
    return run_case(case, pick(target, "qemu"), what, firmware, RunOptions(oracle=oracle))  # type: ignore[arg-type]


def test_a_named_difference_is_proven_and_told(tmp_path: Path) -> None:
    what = program(tmp_path / "p", expected=3, by_design=0)
    record = run(tmp_path, source_named("executorch"), what)
    assert record.verdict.passed, record.cause
    assert record.by_design == ("half-away",)
    (note,) = (n for n in record.notes if "by design" in n)
    assert "half-away" in note
    assert "off by 3 LSB" in note
    assert record.summary()["by_design"] == ["half-away"]
    again = judge_again(Path(record.run_dir or ""))
    assert (again.verdict, again.by_design) == (record.verdict, record.by_design)


def test_one_step_beside_both_definitions_is_a_mismatch(tmp_path: Path) -> None:
    """There is no tolerance: what is nearly the named difference is not it."""
    what = program(tmp_path / "p", expected=3, by_design=1)
    record = run(tmp_path, source_named("executorch"), what)
    assert record.verdict is Verdict.MISMATCH
    assert record.cause is not None
    assert "off by 1 LSB" in record.cause.text  # from the nearer one
    assert record.by_design == ()
    assert not any("by design" in n for n in record.notes)


def test_what_is_expected_passes_without_a_word(tmp_path: Path) -> None:
    what = program(tmp_path / "p", expected=0, by_design=2)
    record = run(tmp_path, source_named("executorch"), what)
    assert record.verdict.passed
    assert record.by_design == ()


def test_the_bundled_runner_has_no_named_differences(tmp_path: Path) -> None:
    what = program(tmp_path / "p", expected=3, by_design=0)
    record = run(tmp_path, source_named("bundled"), what)
    assert record.verdict is Verdict.MISMATCH
    assert judge_again(Path(record.run_dir or "")).verdict is Verdict.MISMATCH


def test_the_oracle_decides_which_of_the_two_is_expected(tmp_path: Path) -> None:
    """A checkout's runner, which follows the C++, against Python: a difference with a name."""
    what = program(tmp_path / "p", expected=0, by_design=3)
    record = run(tmp_path, source_named("executorch"), what, Arithmetic.PYTHON)
    assert record.verdict.passed, record.cause
    assert record.by_design == ("half-away",)
    assert record.program is not None
    assert "as Python defines them" in record.program.oracle
    assert any("not compared with an accepted reference" in note for note in record.notes)
    again = judge_again(Path(record.run_dir or ""))
    assert (again.verdict, again.by_design) == (record.verdict, record.by_design)


def test_without_a_word_what_the_firmware_follows_is_expected(tmp_path: Path) -> None:
    what = program(tmp_path / "p", expected=0, by_design=3)
    for source in map(source_named, source_names()):
        (tmp_path / source.name).mkdir()
        record = run(tmp_path / source.name, source, what)
        assert record.verdict.passed, record.cause
        assert record.by_design == ()
        assert record.program is not None
        assert "as CMSIS-NN defines them" in record.program.oracle


def test_a_bundled_runner_that_does_not_follow_the_oracle_is_wrong(tmp_path: Path) -> None:
    """It is built to follow it: nothing it gives otherwise has a name."""
    what = program(tmp_path / "p", expected=0, by_design=3)
    record = run(tmp_path, source_named("bundled"), what, Arithmetic.PYTHON)
    assert record.verdict is Verdict.MISMATCH
