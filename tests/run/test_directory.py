"""A run directory proves what it proved, or it says which of its files was changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode, Verdict
from harness.run.directory import RECORD, SealBroken, _newest_first, load_record, new_run_dir
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.sim.simulator import pick
from harness.suites.standin.command_line import load_fvp_model
from tools.doubles import double_firmware, double_program, install_double

FVP = "FVP_Corstone_SSE-300_Ethos-U55"
OUTPUT, LATER = "expected/out0.bin", "expected/out1.bin"  # of double_program
ACCEPTED = '{"program": {}, "firmware": {}, "history": [], "pte_sha256": "00", "outputs": []}'


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that passed, on a double."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(home / ".hil"))
        patch.setenv("HIL_REFERENCES", str(home / "references"))
        patch.setenv("HIL_FVP_DIR", str(home / "fvp"))
        install_double(home / "fvp", FVP, "passes", load_fvp_model(FVP).parameters)
        board = load_target("corstone-300-m55", target_directories({}))
        accepted = home / "references" / board.name / "add.json"
        accepted.parent.mkdir(parents=True)
        accepted.write_text(ACCEPTED)
        program = double_program(home / "program")
        case = Case(board.name, "add")
        record = run_case(
            case, pick(board, "fvp"), program, double_firmware(home), RunOptions(strict=False)
        )  # type: ignore[arg-type]
    assert record.verdict.passed, record.cause
    return Path(str(record.run_dir))


@pytest.fixture
def run_dir(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def edit(run_dir: Path, change: Callable[[dict[str, Any]], object]) -> None:
    fields = json.loads((run_dir / "record.json").read_text())
    change(fields)
    (run_dir / "record.json").write_text(json.dumps(fields))


def rewritten(name: str, content: bytes | None = None) -> Callable[[Path], object]:
    """Cut short by one byte when no content is given."""

    def change(run_dir: Path) -> None:
        path = run_dir / name
        path.write_bytes(path.read_bytes()[:-1] if content is None else content)

    return change


def replaced_by_a_fifo(run_dir: Path) -> None:
    (run_dir / "console.log").unlink()
    os.mkfifo(run_dir / "console.log")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "the reference cut out": (
        lambda d: edit(d, lambda f: f["expectation"].update(reference=None, truth=None)),
        "record.json",
    ),
    "a wider tolerance": (
        lambda d: edit(d, lambda f: f["expectation"].update(tolerance_lsb=99)),
        "record.json",
    ),
    "no budgets": (
        lambda d: edit(d, lambda f: f["expectation"].update(budgets={"limits": {"pte_bytes": 9}})),
        "record.json",
    ),
    "no seal": (lambda d: edit(d, lambda f: f.pop("seal")), "record.json"),
    "a seal that is none": (lambda d: edit(d, lambda f: f.update(seal=[])), "record.json"),
    "a shorter seal": (
        lambda d: edit(d, lambda f: f["seal"]["files"].pop("console.log")),
        "record.json",
    ),
    "another console": (rewritten("console.log", b"Test_result: PASS\n"), "console.log"),
    "a console cut short": (rewritten("console.log"), "console.log"),
    "no console": (lambda d: (d / "console.log").unlink(), "console.log"),
    "a FIFO for a console": (replaced_by_a_fifo, "console.log"),
    "expected outputs cut short": (rewritten(OUTPUT), OUTPUT),
    "no expected outputs": (lambda d: (d / LATER).unlink(), LATER),
    "fewer expected sets": (rewritten("expected/program.json", b"{}"), "expected/program.json"),
    "one file more": (lambda d: (d / "expected/more").touch(), "expected/more"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_run_directory_is_not_a_pass(run_dir: Path, name: str) -> None:
    change, culprit = CHANGES[name]
    assert judge_again(run_dir).verdict.passed
    change(run_dir)
    with pytest.raises(SealBroken, match=r"the seal of .* is broken") as caught:
        judge_again(run_dir)
    assert culprit in caught.value.changed
    assert (caught.value.verdict, caught.value.exit_code) == (Verdict.NO_VERDICT, ExitCode.FAILED)
    assert "nothing is proven by it" in (caught.value.hint or "")


def test_expected_and_written_outputs_swapped_together(run_dir: Path) -> None:
    """They agree with each other, and no longer with the run."""
    for name in (OUTPUT, "work/s0-0.bin"):
        (run_dir / name).write_bytes(b"\1" * len((run_dir / name).read_bytes()))
    with pytest.raises(SealBroken):
        judge_again(run_dir)


def test_a_changed_output_is_a_mismatch_and_said(run_dir: Path) -> None:
    output = run_dir / "work/s0-0.bin"
    output.write_bytes(b"\x7f" * len(output.read_bytes()))
    again = judge_again(run_dir)
    assert again.verdict is Verdict.MISMATCH
    assert any("changed since" in note for note in again.notes)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b"\xff", b"null", b'{"schema": 1}', b'{"schema": 1, "seal": 3}'],
)
def test_a_record_that_is_none(run_dir: Path, content: bytes) -> None:
    (run_dir / "record.json").write_bytes(content)
    with pytest.raises((UsageError, SealBroken)):
        judge_again(run_dir)


def test_the_fifos_of_a_killed_run_go_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them, as a search through the folder does, waits for ever. Those of a run that
    is going on stay."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    ours, killed = new_run_dir("ours"), tmp_path / ".hil/runs/killed"
    killed.mkdir()
    for work in (ours / "work", killed / "work"):
        work.mkdir()
        os.mkfifo(work / "npu-request")
        (work / "npu-answer").write_text("a file of the guest")
    new_run_dir("next")
    assert (ours / "work/npu-request").is_fifo()
    assert [path.name for path in (killed / "work").iterdir()] == ["npu-answer"]


@pytest.mark.parametrize("kind", ["fifo", "folder", "nothing"])
def test_a_record_that_is_not_a_file(run_dir: Path, kind: str) -> None:
    path = run_dir / "record.json"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(UsageError):
        judge_again(run_dir)


def test_a_record_without_its_files_is_still_a_record(run_dir: Path) -> None:
    """Reports read it alone."""
    shutil.rmtree(run_dir / "expected")
    assert load_record(run_dir).verdict.passed


WRONG: dict[str, Any] = {
    "metrics": "abc",
    "worst_lsb": [],
    "sets": {},
    "time": None,
    "output_sha256": [[1, {}]],
    "seconds": {"a": "b"},
    "starts": [1e400],
    "case": {"target": 1, "model": []},
    "op_ticks": {"a": []},
    "differential": [],
    "simulator": 3,
    "unheard_of": 1,
}


@pytest.mark.parametrize("name", WRONG)
def test_values_of_other_types_are_no_record(run_dir: Path, name: str) -> None:
    """Without a seal, as an older version wrote it, the types are all that is left to check."""
    edit(run_dir, lambda f: (f.pop("seal"), f.update({name: WRONG[name]})))
    with pytest.raises(UsageError, match="is not a run record"):
        load_record(run_dir)


def test_a_clock_that_was_set_back_makes_no_older_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hil why` explains the run that was made last; also of two in one second."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    (tmp_path / "runs" / "20990101-235959-later-abcdef").mkdir(parents=True)
    (tmp_path / "runs" / "notes").mkdir()
    made = [new_run_dir("add") for _ in range(3)]
    assert [d.name[:15] for d in made] == [f"20990102-00000{n}" for n in range(3)]
    for n, run_dir in enumerate([*made, tmp_path / "runs" / "20990102-000002-aaa-000000"]):
        run_dir.mkdir(exist_ok=True)
        (run_dir / RECORD).write_text("{}")
        os.utime(run_dir / RECORD, (n, n))
    assert [d.name[9:19] for d in _newest_first()] == [
        *("000002-aaa", "000002-add", "000001-add", "000000-add"),
    ]
