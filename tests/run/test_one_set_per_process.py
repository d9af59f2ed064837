"""Protects the run of a firmware that takes one input set per process, as ExecuTorch's does: each
process has to prove itself, and none can speak for another.

The firmware is planted; it takes its command line as ExecuTorch's runner does, and ends in a
chosen way on the second of two input sets. It runs on the real QEMU.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.config.budgets import Budgets
from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.core.errors import UsageError
from harness.firmware.source import CheckoutFacts
from harness.judge.reference import Reference, reference_path, render
from harness.run.directory import load_record, with_digests
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from harness.system.paths import executorch_package
from tools.doubles import double_program, planted_firmware

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
CHECKOUT = CheckoutFacts("", "cff6f4dd32", "main", True, "ab", "hil", ("a note",))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    # as much of a checkout as a run looks at
    shutil.copytree(executorch_package() / "schema", tmp_path / "executorch" / "schema")
    return tmp_path


def run(folder: Path, ending: str, *, inputs: bool = True) -> RunRecord:
    board = load_target("corstone-300-m55", target_directories({}))
    target = replace(board, limits=Limits(host=5.0, stall=1.0))
    program = double_program(folder / "program")
    if not inputs:
        program = replace(program, sets=tuple(replace(s, inputs=()) for s in program.sets))
    firmware = planted_firmware(folder, ending, "executorch")
    firmware = replace(firmware, checkout=replace(CHECKOUT, path=str(folder / "executorch")))
    chosen = pick(target, "qemu")
    options = RunOptions(strict=False)  # what a reference says of another program is not met here
    return run_case(Case(target.name, "add"), chosen, program, firmware, options)  # type: ignore[arg-type]


def directory(record: RunRecord) -> Path:
    assert record.run_dir is not None
    return Path(record.run_dir)


def console(record: RunRecord) -> list[str]:
    return (directory(record) / "console.log").read_text().splitlines()


def test_every_set_has_its_process_and_the_record_says_where(home: Path) -> None:
    record = run(home, "PASSES")
    assert record.verdict.passed, record.cause
    lines = console(record)
    assert lines.count("I [executorch:planted.c:1 main()] Program complete, exiting.") == 2
    (zero, second) = record.starts
    assert (zero, second) == (0, (directory(record) / "console.log").stat().st_size // 2)
    assert record.output_sha256[0] == record.output_sha256[1]
    assert record.metrics["method_allocator_used"] == 1200
    assert record.expectation is not None
    assert record.expectation.build_id is None  # this runner prints none
    assert load_record(directory(record)).starts == record.starts
    assert not (directory(record) / "outputs").exists()


ENDINGS = {
    "NULL_CALL": ("FAULT", "hard_fault", None),
    "LEAVES_2": ("FAULT", "exit_status", "on input set 1"),
    "ABORT_AFTER_PASS": ("FAULT", "runner_error", None),
    "NO_END_MARKER": ("NO_VERDICT", "no_end_marker", "never said it completed on input set 1"),
    "WFI_FOR_EVER": ("HANG", "stall", None),
    "WRONG_BY_ONE": ("MISMATCH", "outputs_differ", "of input set 1"),
    # the first process also writes what the second should, and the second writes nothing
    "FORGES": ("NO_VERDICT", "output_missing", "s1-0.bin"),
    "REWRITES_INPUT": ("NO_VERDICT", "files_rewritten", "to read: s1i0.bin"),
    "UNDECLARED_OUTPUT": ("MISMATCH", "output_undeclared", "s0-1.bin"),
    # the second process writes over what the first has written
    "SPOILS": ("PASS", None, None),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_second_process_is_judged_by_itself(home: Path, ending: str) -> None:
    """The first one always ends well, and its end marker is worth nothing for the second. The
    verdict is the same again offline."""
    verdict, kind, said = ENDINGS[ending]
    record = run(home, ending)
    cause = record.cause
    assert (record.verdict.name, cause and cause.kind) == (verdict, kind), cause
    assert said is None or (cause is not None and said in cause.text)
    assert len(record.starts) == 2
    if cause is not None and cause.line is not None:
        first = (directory(record) / "console.log").read_bytes()[: record.starts[1]].count(b"\n")
        assert first < cause.line <= len(console(record))
    again = judge_again(directory(record))
    assert (again.judgement, again.metrics) == (record.judgement, record.metrics)


def test_nothing_counts_behind_a_process_that_did_not_end_well(home: Path) -> None:
    """The first set gets no input file that can be read; the second may already have run."""
    record = _without_first_input(home)
    assert (record.verdict.name, record.cause and record.cause.kind) == ("FAULT", "runner_error")
    assert record.starts == (0,)
    assert console(record)[-1].endswith("the input cannot be read")
    assert not list((directory(record) / "work").glob("s1*"))
    assert sorted(path.name for path in directory(record).iterdir() if path.is_dir()) == [
        "expected",
        "work",
    ]


def _without_first_input(home: Path) -> RunRecord:
    program = double_program(home / "p")
    (program.directory / program.sets[0].inputs[0]).write_bytes(b"")
    board = load_target("corstone-300-m55", target_directories({}))
    firmware = planted_firmware(home, "PASSES", "executorch")
    case = Case(board.name, "add")
    with pytest.MonkeyPatch.context() as patch:
        # The planted firmware has no checkout whose schema could be compared.
        patch.setattr("harness.run.pipeline.require_fit", lambda *_: ())
        return run_case(case, pick(board, "qemu"), program, firmware, RunOptions())  # type: ignore[arg-type]


def test_an_edited_record_cannot_hide_a_process(home: Path) -> None:
    """With one process in place of two, the second still has to complete; even when it is sealed
    again."""
    record = run(home, "NO_END_MARKER")
    path = directory(record) / "record.json"
    fields = json.loads(path.read_text())
    del fields["seal"]
    for starts in ([], [1], [5, 0], [0, 9, 3]):
        path.write_text(json.dumps({**fields, "starts": starts}))
        with pytest.raises(UsageError, match="is not a run record"):
            load_record(directory(record))
    path.write_text(json.dumps(with_digests({**fields, "starts": [0, 10**9]}, directory(record))))
    assert judge_again(directory(record)).cause is not None


def test_a_program_without_inputs_is_refused(home: Path) -> None:
    """ExecuTorch's runner wants at least one ``-i``, and would only say that it is not right."""
    with pytest.raises(UsageError, match=r"program\.pte is to run without an input") as caught:
        run(home, "PASSES", inputs=False)
    assert caught.value.path is not None
    assert "bundled" in str(caught.value.hint)


def test_references_are_of_one_source(home: Path) -> None:
    """What was accepted of our runner says nothing about ExecuTorch's."""
    ours = Reference("aa", (("00",),), {"pte_bytes": 1}, {"none": {"stack_high_water": 1}}, ())
    case = Case("corstone-300-m55", "add")
    path = reference_path(home / "references", case)
    path.parent.mkdir(parents=True)
    path.write_text(render(ours))
    record = run(home, "PASSES")
    assert record.verdict.passed, record.cause
    assert "no reference run accepted yet" in record.notes
    theirs = reference_path(home / "references", case, "executorch")
    assert theirs.name == "add.executorch.json"
    theirs.write_text(render(ours))
    shutil.rmtree(home / "program")
    held = run(home, "PASSES")
    assert held.cause is not None
    assert held.cause.kind == "not_measured"  # it is demanded now


def test_limits_of_what_the_runner_does_not_tell_are_said_and_not_held(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"stack_high_water": 5, "method_allocator_used": 1200, "pte_bytes": 10_000}
    monkeypatch.setattr("harness.run.judging.budgets_of", lambda case: Budgets(limits=limits))
    record = run(home, "PASSES")
    assert record.verdict.passed, record.cause
    assert "limits not checked, the runner does not report them: stack_high_water" in record.notes
    shutil.rmtree(home / "program")
    limits["method_allocator_used"] = 1199
    over = run(home, "PASSES")
    assert over.cause is not None
    assert over.cause.kind == "over_limit"


def test_the_record_says_whose_firmware_it_was(home: Path) -> None:
    record = run(home, "NO_END_MARKER")
    assert record.title == "corstone-300-m55/add [executorch cff6f4dd+edits]"
    assert record.simulator is not None
    assert "a note" in record.simulator.differences
    assert load_record(directory(record)) == record
    assert record.summary()["firmware"] == {
        "source": "executorch",
        "checkout": {**asdict(CHECKOUT), "path": str(home / "executorch")},
    }
