"""Protects what the history takes from a run: the console around its cause, not more than fits."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.errors import InfraError
from harness.core.judgement import Cause, Judgement
from harness.core.verdict import Verdict
from harness.export.program import OutputAccuracy, Witnessed
from harness.nightly.history.nights import Excerpt, Planned, Row
from harness.nightly.history.row_of_record import case_name, row_of, target_digest
from harness.run.record import ProgramFacts, RunRecord, failed_record
from tests.size.samples import sample_pte

from .made import night

CASE = Case("corstone-300-m55", "add")


def kept(record: RunRecord) -> Row:
    planned = Planned(CASE.id, owner="me", quarantined="until …")
    return row_of(record, night(1), planned, attempt=1, seconds=1.23456, harness="h")


def failing(run_dir: Path, cause: Cause) -> RunRecord:
    return RunRecord(CASE, "2026", Judgement(Verdict.FAULT, cause), run_dir=str(run_dir))


@pytest.mark.parametrize(
    ("line", "first", "last"), [(1, 1, 4), (10, 4, 13), (20, 11, 20), (None, 11, 20)]
)
def test_the_console_around_the_line_of_the_cause(
    line: int | None, first: int, last: int, tmp_path: Path
) -> None:
    (tmp_path / "console.log").write_bytes(b"".join(b"line %d\n" % n for n in range(1, 21)))
    found = kept(failing(tmp_path, Cause("runner_error", "x", line))).excerpt
    assert found == Excerpt(first, tuple(f"line {n}" for n in range(first, last + 1)))


def test_a_console_that_anybody_wrote_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_bytes(b"\x1b[31mred\x1b[0m\n::error::no\n\xff\n" + b"x" * 9999)
    found = kept(failing(tmp_path, Cause("k", "x"))).excerpt
    assert found is not None
    assert found.lines[:3] == ("red", ": :error::no", "�")
    assert len(found.lines[3]) == 120


def test_a_row_stays_small_whatever_the_run_said(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_bytes((b"y" * 500 + b"\n") * 50)
    long = Cause("k", "t" * 5000, 3, {"log": "l" * 5000, "lsb": 3})
    outputs = tuple(OutputAccuracy(f"output{n}", 300, 24.25 - n, 0.6667, 0.0123) for n in range(9))
    record = RunRecord(
        CASE,
        "2026",
        Judgement(Verdict.FAULT, long, ("n" * 5000,) * 9),
        run_dir=str(tmp_path),
        program=ProgramFacts("x", "a" * 64, "o", accuracy=outputs, witness=Witnessed(30, 30, 1)),
    )
    row = kept(record)
    assert row.sqnr_db == 16.25
    assert row.witness == Witnessed(30, 30, 1)
    assert row.cause is not None
    assert row.cause.facts == {"lsb": 3}
    assert row.cause.text.endswith("…")
    assert len(json.dumps(asdict(row))) < 4096


def test_the_program_and_its_model_are_kept_to_tell_drift(tmp_path: Path) -> None:
    pte, model = tmp_path / "program.pte", tmp_path / "mine.py"
    pte.write_bytes(sample_pte())
    model.write_text("ModelUnderTest = 1\n")
    facts = ProgramFacts(str(pte), "aa", "oracle", versions={"torch": "2.13.0"})
    record = RunRecord(
        Case(CASE.target, str(model)), "2026", Judgement(Verdict.PASS), program=facts
    )
    row = kept(record)
    assert [line.split()[0] for line in row.outline] == ["my::linear.out"]
    assert row.versions == {"torch": "2.13.0"}
    assert len(row.model_source) == 16
    assert kept(replace(record, case=CASE)).model_source == "add"
    pte.write_bytes(b"no program")
    model.unlink()
    assert (kept(record).outline, kept(record).model_source) == ((), "")


def test_a_case_that_ended_before_it_ran_has_a_row() -> None:
    row = kept(failed_record(CASE, InfraError("no disk")))
    assert (row.verdict, row.excerpt, row.run_dir) == (Verdict.INFRA, None, None)
    assert row.identity.target == target_digest(CASE.target) != ""
    assert (row.owner, row.quarantined, row.seconds) == ("me", "until …", {"total": 1.235})


def test_a_case_is_called_the_same_whatever_commit_its_firmware_is_of() -> None:
    assert case_name(CASE, "bundled") == "corstone-300-m55/add"
    assert case_name(CASE, "executorch") == "corstone-300-m55/add [executorch]"


def test_a_target_is_known_by_what_its_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hil.toml").write_text('targets = ["."]')
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    board = tmp_path / "mine.yaml"
    digests = []
    for text in (
        "extends: host\n",
        "# a comment\nextends: host\n",
        "extends: host\nlimits: {host: 7}\n",
        "extends: host\nport: [\n",
    ):
        board.write_text(text)
        digests.append(target_digest("mine"))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert digests[3].startswith("malformed ")
    assert target_digest("nowhere") == ""


def test_a_failed_export_knows_its_exporter() -> None:
    """It is what broke it; a case that ended before knows nothing of it."""
    cause = Cause("export_failed", "no rule")
    row = kept(RunRecord(CASE, "2026", Judgement(Verdict.EXPORT_ERROR, cause)))
    assert row.identity.exporter == f"wheel {row.versions['executorch']}"
    assert "torch" in row.versions
    early = kept(failed_record(CASE, InfraError("no disk")))
    assert (early.identity.exporter, early.versions) == ("", {})
