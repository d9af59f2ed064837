"""Protects the record: what was written can be read back, and nothing else is taken for one."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.config.budgets import Budgets, Slack
from harness.config.case import Case
from harness.core.errors import BadModel, ExportError, UsageError
from harness.core.judgement import Blame, Cause, Judgement
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.export.program import OutputAccuracy, Witnessed
from harness.judge.evidence import Expectation
from harness.judge.reference import Reference
from harness.report.summary import summarise, summary_of_runs
from harness.report.terminal import print_records, representative
from harness.run.directory import SEAL, load_record, save_record, with_digests
from harness.run.record import (
    FirmwareFacts,
    ProgramFacts,
    RunRecord,
    exact_harness_revision,
    exit_code,
    failed_record,
    harness_revision,
    host,
)
from harness.sim.simulator import NpuResult, NpuStop, NpuUse
from harness.sim.transcript import Ending, SimulatorFacts
from harness.system.files import DiskError
from harness.system.process import Stop

REFERENCE = Reference("aa", (("11",),), {"pte_bytes": 1}, {"gcc": {"elf_text": 2}}, ({"why": "x"},))


def record(directory: Path | None = None, verdict: str = "PASS") -> RunRecord:
    cause = None if verdict == "PASS" else Cause("kind", "text", 3, {"a": 1})
    return RunRecord(
        case=Case("corstone-300-m55", "ds_cnn"),
        time="2026-01-01T00:00:00+00:00",
        judgement=Judgement(Verdict[verdict], cause, ("a note",)),
        metrics={"pte_bytes": 1},
        output_sha256=(("11",),),
        op_ticks={"cortex_m::pad.out": (1, 100)},
        run_dir=None if directory is None else str(directory),
        simulator=SimulatorFacts(SimulatorName.QEMU, "7.2", True, None, ("qemu", "-M"), {}),
        ending=Ending(Stop.EXITED, 0, None, 0.5),
        expectation=Expectation("00ff", True, "aa", "gcc", 0.0, REFERENCE),
    )


def test_round_trip(tmp_path: Path) -> None:
    written = record(tmp_path, "MISMATCH")
    save_record(written)
    assert load_record(tmp_path) == written


def test_budgets_are_kept_as_they_were_given(tmp_path: Path) -> None:
    budgets = Budgets(limits={"pte_bytes": 9}, slacks={"elf_text": Slack(bytes=0, share=0.0)})
    expectation = record().expectation
    assert expectation is not None
    written = replace(record(tmp_path), expectation=replace(expectation, budgets=budgets))
    save_record(written)
    assert load_record(tmp_path) == written


def test_a_budget_of_no_known_figure_is_not_a_record(tmp_path: Path) -> None:
    save_record(record(tmp_path))
    fields = json.loads((tmp_path / "record.json").read_text())
    del fields["seal"]
    fields["expectation"]["budgets"] = {"x": 1}
    (tmp_path / "record.json").write_text(json.dumps(fields))
    with pytest.raises(UsageError, match="is not a run record"):
        load_record(tmp_path)


def test_what_a_model_of_an_npu_adds_is_kept(tmp_path: Path) -> None:
    written = replace(
        record(tmp_path, "FAULT"),
        npu=NpuUse(2, NpuStop(1, NpuResult.FAULT, "outside", 0x24)),
        mismatch_at="delegate 0",
        blame=Blame("compiler", "the compiler", {"culprit": "compiler", "operators": ["SLICE"]}),
        simulator=SimulatorFacts(
            SimulatorName.QEMU, "7", True, None, (), {}, differences=("another CPU",)
        ),
        program=ProgramFacts(
            "p.pte",
            "aa",
            "TOSA",
            ({"name": "eager"},),
            ("aten::add.out",),
            accuracy=(OutputAccuracy("output0", 3, 24.5, None, 0.0),),
            witness=Witnessed(5, 4, 1),
        ),
        firmware=FirmwareFacts("runner", "key", "00ff", "gcc"),
    )
    save_record(written)
    assert load_record(tmp_path) == written
    summary = written.summary()
    assert summary["differences"] == ["another CPU"]
    (accuracy,) = summary["accuracy"]
    assert (accuracy["output"], accuracy["sqnr_db"], accuracy["top1"]) == ("output0", 24.5, None)
    assert summary["witness"] == {"values": 5, "paired": 4, "worst": 1}
    assert summary["oracles"] == {"expected": "TOSA", "others": [{"name": "eager"}]}


def test_the_terminal_shows_how_far_the_oracles_are_apart() -> None:
    """A column for the quantised eager model, only where there is one."""
    worst = [{"lsb": 0.5, "set": 0, "element": [0]}, {"lsb": 2.0, "set": 1, "element": [3]}]
    oracles = [{"name": "quantised eager model", "worst": worst}]
    shown = Console(record=True, width=100)
    print_records(
        shown,
        [
            replace(
                record(), program=ProgramFacts("p.pte", "aa", "o", tuple(oracles)), worst_lsb=0.0
            )
        ],
    )
    table = shown.export_text().splitlines()
    assert table[1].split() == [
        "model",
        "verdict",
        "LSB",
        "eager",
        ".pte",
        "text",
        "planned",
        "stack",
        "instr",
    ]
    assert table[2].split()[:5] == ["ds_cnn", "PASS", "0", "2", "1"]
    print_records(shown, [record()])
    assert "eager" not in shown.export_text()


def test_who_a_users_model_is_is_kept(tmp_path: Path) -> None:
    """Read on another machine, where no such file is, it is the same case."""
    written = replace(record(tmp_path), case=Case("host", "/gone/models/mine.py", "models/mine.py"))
    save_record(written)
    assert load_record(tmp_path).case.id == "host/models/mine.py"


def tolerant(directory: Path | None = None, verdict: str = "PASS") -> RunRecord:
    plain = record(directory, verdict)
    assert plain.expectation is not None
    return replace(plain, expectation=replace(plain.expectation, tolerance_lsb=2.0))


def test_a_verdict_with_a_tolerance_never_stands_without_it() -> None:
    summary = tolerant().summary()
    assert summary["verdict"] == "PASS"
    assert (summary["verdict_text"], summary["tolerance_lsb"]) == ("PASS (tolerance 2 LSB)", 2.0)
    shown = Console(record=True, width=100)
    print_records(shown, [tolerant(), tolerant(verdict="MISMATCH"), record()])
    text = shown.export_text()
    assert "ds_cnn  PASS (tolerance 2 LSB) " in text
    assert "corstone-300-m55/ds_cnn: FAIL MISMATCH (tolerance 2 LSB) kind" in text
    assert "2 of 3 passed, 1 of them with a tolerance" in text
    page = summary_of_runs([summarise(tolerant(verdict="MISMATCH"))])
    assert "| corstone-300-m55/ds\\_cnn | MISMATCH (tolerance 2 LSB) | kind: text |" in page
    assert "- note: a note (corstone-300-m55/ds\\_cnn)" in page


def seal_again(run_dir: Path, fields: dict[str, Any]) -> None:
    """As somebody would who edits a record and knows of the seal."""
    del fields[SEAL]
    (run_dir / "record.json").write_text(json.dumps(with_digests(fields, run_dir)))


@pytest.mark.parametrize("lsb", ["1000000000.0", "NaN", "-1.0"])
def test_a_record_with_a_tolerance_that_says_nothing_is_none(tmp_path: Path, lsb: str) -> None:
    save_record(tolerant(tmp_path))
    text = (tmp_path / "record.json").read_text()
    seal_again(tmp_path, json.loads(text.replace('lsb": 2.0', f'lsb": {lsb}')))
    with pytest.raises(UsageError, match="is not a run record"):
        load_record(tmp_path)


def test_what_a_record_does_not_say_of_the_console_is_not_known(tmp_path: Path) -> None:
    save_record(record(tmp_path))
    fields = json.loads((tmp_path / "record.json").read_text())
    del fields["ending"]["console_complete"]
    seal_again(tmp_path, fields)
    ending = load_record(tmp_path).ending
    assert ending is not None
    assert not ending.console_complete


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no record.json"),
        ("{", "cannot be read"),
        ('{"schema": 99}', "another format"),
        ('{"schema": 2}', "is not a run record"),
        ("[]", "another format"),
    ],
)
def test_what_is_not_a_record(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "record.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        load_record(tmp_path)


def test_json_summary_has_what_the_documentation_promises(tmp_path: Path) -> None:
    summary = json.loads(json.dumps(record(tmp_path, "FAULT").summary()))
    assert summary["verdict"] == "FAULT"
    assert summary["cause"] == {"kind": "kind", "text": "text", "line": 3, "facts": {"a": 1}}
    assert summary["metrics"] == {"pte_bytes": 1}
    assert summary["run_dir"] == str(tmp_path)


def test_an_early_error_becomes_a_record_with_its_hint() -> None:
    class Dead(ExportError):
        kind = "dead_model"

        def __init__(self, outputs: int) -> None:
            self.outputs = outputs
            super().__init__("the outputs are constant", hint="train it")

    failed = failed_record(Case("host", "dead.py"), Dead(1))
    assert failed.verdict.name == "EXPORT_ERROR"
    assert failed.cause == Cause(
        "dead_model", "the outputs are constant; train it", None, {"outputs": 1}
    )


def test_a_hint_behind_a_whole_sentence_is_one_of_its_own() -> None:
    error = UsageError("There is no file Kconfig.meter.", hint="Write the file.")
    failed = failed_record(Case("host", "m.py"), error)
    assert failed.cause is not None
    assert failed.cause.text == "There is no file Kconfig.meter. Write the file."


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["PASS"], 0),
        (["PASS", "MISMATCH"], 1),
        (["PASS", "INFRA"], 3),
        (["INFRA", "FAULT"], 1),
        (["NO_VERDICT"], 1),
        (["SKIPPED"], 1),
        (["SKIPPED", "PASS"], 0),
        ([], 1),
        (["INFRA"], 3),
    ],
)
def test_exit_codes(verdicts: list[str], code: int) -> None:
    assert exit_code(record(verdict=v) for v in verdicts) == code


@pytest.mark.parametrize(
    ("verdicts", "code"), [([], 2), (["PASS"], 2), (["INFRA"], 2), (["SKIPPED"], 2), (["FAULT"], 1)]
)
def test_what_the_user_got_wrong_is_not_the_products_failure(
    verdicts: list[str], code: int
) -> None:
    wrong = failed_record(Case("host", "m.py"), BadModel("m.py defines nothing"))
    assert wrong.exit_code == 2
    assert exit_code([wrong, *(record(verdict=v) for v in verdicts)]) == code


def test_the_first_failure_speaks_for_all() -> None:
    records = [record(), record(verdict="HANG"), record(verdict="FAULT")]
    shown = representative(records)
    assert shown is not None
    assert shown.verdict.name == "HANG"
    assert representative([]) is None


def test_a_record_that_cannot_be_written_is_infrastructure(tmp_path: Path) -> None:
    """The case still gets a verdict, and the others go on."""
    with pytest.raises(DiskError, match="writing the record") as caught:
        save_record(record(tmp_path / "gone"))
    assert caught.value.errno == "ENOENT"


def test_a_truth_is_kept(tmp_path: Path) -> None:
    """Judged again offline, the run is held against what it was held against."""
    expectation = record().expectation
    assert expectation is not None
    written = replace(
        record(tmp_path),
        expectation=replace(expectation, truth=replace(REFERENCE, truth=True)),
    )
    save_record(written)
    assert load_record(tmp_path) == written


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "clone")
    folder = tmp_path / "clone"
    (folder / "file").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def test_it_is_what_git_says_however_it_is_kept(clone: Path) -> None:
    """A branch, a packed one, a detached HEAD, a linked worktree: without asking git."""
    commit = git(clone, "rev-parse", "HEAD")[:12]
    assert harness_revision(clone) == commit
    git(clone, "pack-refs", "--all")
    assert harness_revision(clone) == commit
    git(clone, "worktree", "add", "-q", "-b", "other", "../linked")
    assert harness_revision(clone.parent / "linked") == commit
    git(clone, "checkout", "-q", "--detach")
    assert harness_revision(clone) == commit


def test_edits_are_reported_to_whoever_asks_git(clone: Path) -> None:
    clean = exact_harness_revision(clone)
    assert clean == harness_revision(clone)
    (clone / "file").write_text("2")
    first = exact_harness_revision(clone)
    (clone / "file").write_text("3")
    assert first.startswith(f"{clean}+edits ")
    assert exact_harness_revision(clone) != first


def test_a_broken_clone_is_nobody_and_no_error(clone: Path) -> None:
    (clone / ".git" / "HEAD").unlink()
    assert harness_revision(clone) == ""


def test_an_installation_has_its_version(tmp_path: Path) -> None:
    assert harness_revision(tmp_path)[:1].isdigit()
    assert exact_harness_revision(tmp_path) == harness_revision(tmp_path)


def test_the_host_is_named_with_its_machine() -> None:
    assert host().endswith(")")
    assert " (" in host()
