"""Protects what may be accepted: only what is right, and only what was asked for.

Runs and measurements are planted; what they do for real is in ``tests/cli/test_run.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.config.budgets import Budgets
from harness.config.case import RUNNER, Case
from harness.core.errors import ExportError, HarnessError, InfraError, UsageError
from harness.core.judgement import Cause, Judgement, Reason
from harness.core.verdict import Verdict
from harness.export.program import OutputAccuracy
from harness.firmware.choice import FirmwareChoice
from harness.firmware.names import source_names
from harness.firmware.source import source_named
from harness.judge.evidence import Expectation
from harness.judge.program_contents import OperatorChange, ProgramContents, ProgramDifference
from harness.judge.reference import ANY_TOOLCHAIN, Reference, load_reference, load_truth
from harness.run import accept as accepting
from harness.run.accept import NotAcceptable, Proposal, accept_case
from harness.run.gate import Measured
from harness.run.pipeline import RunOptions
from harness.run.record import ProgramFacts, RunRecord
from harness.size.anatomy import Anatomy, Part
from harness.system.progress import silent

RUN_OPTIONS = RunOptions()
CASE = Case("corstone-300-m55", "add")
RUN = RunRecord(
    CASE,
    "now",
    Judgement(Verdict.PASS),
    {
        "pte_bytes": 1000,
        "elf_text": 9000,
        "stack_high_water": 80,
        "stack_high_water_total": 999,
        "ticks_set0": 5,
    },
    output_sha256=(("11",),),
    expectation=Expectation("00", True, "aa", "gcc 12", 0.0, None),
)
ANATOMY = Anatomy("pte", 1000, (Part(("constants", "x"), 1000),))
PROGRAM = Measured(
    CASE, "program", ANY_TOOLCHAIN, ANATOMY, {"pte_bytes": 1000, "planned_bytes": 48}
)
FIRMWARE = Measured(Case(CASE.target, RUNNER), "firmware", "gcc 12", ANATOMY, {"elf_text": 9000})


class Plants:
    """What running and measuring gives; ``ran`` counts the runs."""

    def __init__(self) -> None:
        self.record = RUN
        self.program: Measured | HarnessError = PROGRAM
        self.firmware: Measured | HarnessError = FIRMWARE
        self.ran = 0

    def run(self, cases: Sequence[Case], *_: Any) -> list[RunRecord]:
        self.ran += 1
        return [self.record for _ in cases]

    def measure(self, subjects: Sequence[Case], *_: Any) -> list[Measured | HarnessError]:
        return [self.firmware if c.model == RUNNER else self.program for c in subjects]


@pytest.fixture
def plants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plants:
    planted = Plants()
    monkeypatch.setattr(accepting, "run_cases", planted.run)
    monkeypatch.setattr(accepting, "measure_cases", planted.measure)
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    return planted


def accept(
    subject: str = CASE.id, reason: str = "first", run: RunOptions = RUN_OPTIONS, **options: Any
) -> Proposal:
    return accept_case(subject, reason, run, **{"dry_run": False, "progress": silent, **options})


def stored(tmp_path: Path, case: Case = CASE) -> Reference:
    found = load_reference(tmp_path / "references", case)
    assert found is not None
    return found


def test_a_case_is_accepted_whole(plants: Plants, tmp_path: Path) -> None:
    proposal = accept()
    assert proposal.written
    found = stored(tmp_path)
    assert (found.pte_sha256, found.outputs) == ("aa", (("11",),))
    assert found.program == {"planned_bytes": 48, "pte_bytes": 1000}
    assert found.firmware == {"gcc 12": {"elf_text": 9000, "stack_high_water": 80}}
    assert set(found.anatomies) == {ANY_TOOLCHAIN}
    assert proposal.summary()["verdict"] == "PASS"
    assert "nothing changes" in accept(reason="again").text()
    assert len(stored(tmp_path).history) == 1


def test_only_size_runs_nothing_and_keeps_the_outputs(plants: Plants, tmp_path: Path) -> None:
    accept()
    plants.program = replace(PROGRAM, figures={"pte_bytes": 2000, "planned_bytes": 48})
    plants.firmware = replace(FIRMWARE, figures={"elf_text": 9500})
    proposal = accept(only="size", reason="larger")
    assert plants.ran == 1
    found = stored(tmp_path)
    assert (found.pte_sha256, found.outputs) == ("aa", (("11",),))
    assert found.program["pte_bytes"] == 2000
    assert found.firmware["gcc 12"] == {"elf_text": 9500, "stack_high_water": 80}
    assert found.history[1] == {
        "when": found.history[1]["when"],
        "why": "larger",
        "toolchain": "gcc 12",
        "what": {"elf_text": [9000, 9500], "pte_bytes": [1000, 2000]},
    }
    assert proposal.summary() == {
        "case": CASE.id,
        "reference": str(proposal.path),
        "program_change": "",
        "diff": proposal.change,
        "written": True,
    }


def test_only_size_of_a_target_without_a_memory_map_is_its_program(
    plants: Plants, tmp_path: Path
) -> None:
    plants.firmware = InfraError("nobody asked to build this")
    accept("host/add", only="size")
    found = stored(tmp_path, Case("host", "add"))
    assert (found.firmware, set(found.program)) == ({}, {"pte_bytes", "planned_bytes"})


def test_only_outputs_accepts_no_growth(plants: Plants, tmp_path: Path) -> None:
    accept()
    grown = Cause("grown", "elf_text grew")
    plants.record = replace(
        RUN,
        judgement=Judgement(Verdict.OVER_BUDGET, grown),
        output_sha256=(("22",),),
        metrics={**RUN.metrics, "elf_text": 99_999},
    )
    accept(only="outputs", reason="rounding")
    found = stored(tmp_path)
    assert found.outputs == (("22",),)
    assert found.firmware["gcc 12"]["elf_text"] == 9000


def with_accuracy(sqnr_db: float) -> RunRecord:
    accuracy = OutputAccuracy("output0", 3, sqnr_db, None, 0.0)
    lost = Cause("accuracy", "the SQNR went from 38 to 25")
    judged = RUN.judgement if sqnr_db > 30 else Judgement(Verdict.OVER_BUDGET, lost)
    facts = ProgramFacts("none.pte", "aa", "oracle", accuracy=(accuracy,))
    return replace(RUN, program=facts, judgement=judged)


@pytest.fixture
def no_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "contents_of", lambda _: None)


@pytest.mark.usefixtures("no_contents")
def test_the_accuracy_is_accepted_with_the_outputs(plants: Plants, tmp_path: Path) -> None:
    accept()
    assert stored(tmp_path).accuracy == ()  # as in a reference of before
    plants.record = with_accuracy(38.0)
    accept(only="size")
    assert stored(tmp_path).accuracy == ()
    accept()
    plants.record = with_accuracy(25.0)
    assert '"sqnr_db": 25.0' in accept(reason="fewer bits").change
    found = stored(tmp_path)
    assert [each.sqnr_db for each in found.accuracy] == [25.0]
    assert found.history[-1]["what"] == {"output0 sqnr_db": [38.0, 25.0]}


@pytest.mark.usefixtures("no_contents")
def test_an_accuracy_below_its_budget_is_refused(
    plants: Plants, monkeypatch: pytest.MonkeyPatch
) -> None:
    plants.record = with_accuracy(25.0)
    monkeypatch.setattr(accepting, "budgets_of", lambda _: Budgets(min_sqnr_db=30))
    with pytest.raises(NotAcceptable, match="is 25; the budget min_sqnr_db is 30"):
        accept()


@pytest.mark.parametrize("only", [None, "size"])
def test_a_runner_is_built_and_measured(plants: Plants, tmp_path: Path, only: Any) -> None:
    proposal = accept(f"{CASE.target}/{RUNNER}", only=only)
    assert plants.ran == 0
    assert proposal.path.name == "runner.json"
    found = stored(tmp_path, FIRMWARE.case)
    assert found.firmware == {"gcc 12": {"elf_text": 9000}}
    assert set(found.anatomies) == {"gcc 12"}


def test_a_dry_run_writes_nothing(plants: Plants, tmp_path: Path) -> None:
    proposal = accept(dry_run=True)
    assert '+  "pte_bytes": 1000' in proposal.change
    assert "pte_bytes 1,000" in proposal.text()
    assert "not written (--dry-run)" in proposal.text()
    assert not (tmp_path / "references").exists()


def test_a_named_default_memory_mode_is_the_same_case(plants: Plants) -> None:
    named = accept("corstone-300-u55-128@Shared_Sram/add", dry_run=True).path
    assert named == accept("corstone-300-u55-128/add", dry_run=True).path


DIFFERENCE = ProgramDifference((OperatorChange("a::b.out", "added"),), 1)


def ran_another_program(sha256: str = "bb") -> RunRecord:
    assert RUN.expectation is not None
    reference = Reference("aa", (("11",),), {}, {}, ())
    return replace(
        RUN,
        expectation=replace(
            RUN.expectation,
            pte_sha256=sha256,
            reference=reference,
            program_difference=DIFFERENCE,
        ),
    )


def test_a_change_of_the_program_is_shown_and_kept(plants: Plants, tmp_path: Path) -> None:
    accept()
    plants.record = ran_another_program()
    proposal = accept(reason="torch 2.14")
    assert "program: a::b.out added" in proposal.text()
    assert proposal.summary()["program_change"] == "a::b.out added"
    found = stored(tmp_path)
    assert found.pte_sha256 == "bb"
    assert found.history[-1]["program"] == "a::b.out added"


def test_the_truth_of_another_program_is_refused(plants: Plants, tmp_path: Path) -> None:
    """Nothing would stand behind its outputs: neither the truth until now nor the oracle."""
    accept(truth=True)
    plants.record = ran_another_program()
    with pytest.raises(NotAcceptable, match="ran another program than the accepted one"):
        accept(truth=True, reason="newer")
    assert stored(tmp_path).pte_sha256 == "aa"


@pytest.mark.parametrize("only", [None, "outputs"])
def test_what_the_program_contains_is_kept(
    plants: Plants, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, only: Any
) -> None:
    contents = ProgramContents((0, 64), "w", "p", "", (("a::b.out", 1, 0.5, None, True),))
    monkeypatch.setattr(accepting, "contents_of", lambda pte: contents)
    plants.record = replace(RUN, program=ProgramFacts("program.pte", "aa", "oracle"))
    accept(only=only)
    assert stored(tmp_path).contents == contents
    assert stored(tmp_path).figures_and_outputs().contents is None


@pytest.mark.parametrize("kind", ["grown", "reference_outputs", "not_measured"])
def test_what_accepting_is_for(plants: Plants, kind: str) -> None:
    plants.record = replace(RUN, judgement=Judgement(Verdict.OVER_BUDGET, Cause(kind, "x")))
    assert accept().written


@pytest.mark.parametrize("only", [None, "outputs"])
@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        ("MISMATCH", "outputs_differ"),
        ("FAULT", "hard_fault"),
        ("NO_VERDICT", "program_changed"),
        ("OVER_BUDGET", "over_limit"),
    ],
)
def test_a_wrong_run_is_refused(
    plants: Plants, tmp_path: Path, verdict: str, kind: str, only: Any
) -> None:
    plants.record = replace(RUN, judgement=Judgement(Verdict[verdict], Cause(kind, "it is wrong")))
    with pytest.raises(NotAcceptable, match=rf"ends in {verdict} \({kind}\): it is wrong"):
        accept(only=only)
    assert not (tmp_path / "references").exists()


@pytest.mark.parametrize(
    ("subject", "only", "limits"),
    [
        (CASE.id, "size", {"pte_bytes": 900}),
        (CASE.id, "size", {"elf_text": 900}),
        (CASE.id, None, {"planned_bytes": 1}),
        (f"{CASE.target}/{RUNNER}", None, {"elf_text": 900}),
    ],
)
def test_a_hard_limit_cannot_be_accepted(
    plants: Plants,
    monkeypatch: pytest.MonkeyPatch,
    subject: str,
    only: Any,
    limits: dict[str, int],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(accepting, "budgets_of", lambda case: Budgets(limits=limits))
    (name,) = limits
    with pytest.raises(NotAcceptable, match=rf"{name} is \d+ bytes, \d+ over its limit") as caught:
        accept(subject, only=only)
    assert "a hard limit cannot be accepted" in str(caught.value.hint)
    assert not (tmp_path / "references").exists()


@pytest.mark.parametrize("only", [None, "size"])
def test_what_cannot_be_measured_is_not_accepted(plants: Plants, tmp_path: Path, only: Any) -> None:
    plants.program = ExportError("the exporter died")
    with pytest.raises(ExportError, match="the exporter died"):
        accept(only=only)
    assert not (tmp_path / "references").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"reason": " "}, "the reason is empty"),
        ({"subject": "add"}, "is not a case"),
        ({"subject": f"{CASE.target}/{RUNNER}", "only": "outputs"}, "has no outputs"),
        ({"subject": "nowhere/add"}, "nowhere"),
    ],
)
def test_wrong_usage_runs_nothing(plants: Plants, call: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        accept(**call)
    assert plants.ran == 0


def test_a_reference_that_cannot_be_written_is_infrastructure(
    plants: Plants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_REFERENCES", "/proc/no-folder-can-be-made-here")
    with pytest.raises(InfraError, match="writing the reference") as caught:
        accept()
    assert str(caught.value.path).startswith("/proc/no-folder")


def test_the_file_is_json_with_the_reason(plants: Plants) -> None:
    fields = json.loads(accept(reason="because").path.read_text())
    assert fields["history"][0]["why"] == "because"


CHECKOUT = FirmwareChoice((source_named("executorch"),), Path("/src/executorch"))


def test_a_checkouts_reference_is_a_file_of_its_own(plants: Plants, tmp_path: Path) -> None:
    accept()
    plants.record = replace(RUN, output_sha256=(("22",),))
    proposal = accept(reason="theirs", run=RunOptions(firmware=CHECKOUT))
    assert proposal.path.name == "add.executorch.json"
    assert stored(tmp_path).outputs == (("11",),)
    theirs = load_reference(tmp_path / "references", CASE, "executorch")
    assert theirs is not None
    assert (theirs.outputs, theirs.truth) == ((("22",),), False)
    assert load_truth(tmp_path / "references", CASE) is None


def test_a_truth_may_differ_from_the_oracle_and_nothing_else_may(
    plants: Plants, tmp_path: Path
) -> None:
    apart = Judgement(Verdict.MISMATCH, Cause(Reason.OUTPUTS_DIFFER, "off by 9 LSB"))
    plants.record = replace(RUN, judgement=apart)
    options = RunOptions(firmware=CHECKOUT)
    with pytest.raises(NotAcceptable, match="off by 9 LSB"):
        accept(run=options)
    assert accept(run=options, truth=True, reason="the real thing").written
    truth = load_truth(tmp_path / "references", CASE)
    assert truth is not None
    assert truth.history[-1]["what"]["truth"] == [None, True]
    faulty = Judgement(Verdict.FAULT, Cause("hard_fault", "it died"))
    plants.record = replace(RUN, judgement=faulty)
    with pytest.raises(NotAcceptable, match="it died"):
        accept(run=options, truth=True)


def test_two_results_are_not_accepted_at_once(plants: Plants) -> None:
    both = FirmwareChoice(tuple(map(source_named, source_names())), Path("/src/executorch"))
    with pytest.raises(UsageError, match="one can be accepted at a time"):
        accept(run=RunOptions(firmware=both))
    assert plants.ran == 0


@pytest.mark.parametrize(
    "how",
    [
        {"only": "size", "truth": True},
        {"only": "size", "run": RunOptions(firmware=CHECKOUT)},
        {"subject": f"{CASE.target}/{RUNNER}", "truth": True},
    ],
)
def test_sizes_have_no_truth_and_are_the_bundled_runners(
    plants: Plants, how: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="sizes alone are accepted of the bundled runner") as e:
        accept(**how)
    assert e.value.hint == "accept a case with its run: TARGET/MODEL, without --only size"
    assert plants.ran == 0


def test_the_references_of_the_harness_are_not_a_users_to_change(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before anything is run; an empty file of settings is a place for them."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.delenv("HIL_REFERENCES", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no place for the reference of host/add") as caught:
        accept_case("host/add", "mine", RUN_OPTIONS, dry_run=True, progress=silent)
    assert "hil.toml" in str(caught.value.hint)
    (tmp_path / "hil.toml").touch()
    monkeypatch.setattr(accepting, "run_cases", lambda *_: [replace(RUN, case=Case("host", "add"))])
    made = accept_case("host/add", "mine", RUN_OPTIONS, dry_run=True, progress=silent)
    assert made.path == tmp_path / "references" / "host" / "add.json"
