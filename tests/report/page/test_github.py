"""Protects what GitHub shows of a night: one annotation for what failures share, and a summary in
which nothing that others wrote does anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.judgement import Cause
from harness.core.verdict import Verdict
from harness.nightly.history.compare import Comparison, compare
from harness.report.page.render import summary, workflow_commands
from harness.report.summary import append_to_step_summary

from .nights import M55, U55, U85, compared, many, night, row

ON_GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/home/runner/work/it"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("github"))


def test_an_annotation_for_what_they_share(page: Comparison) -> None:
    """The kernel bug is one line, which ends where it should; the infrastructure is a warning."""
    lines = workflow_commands(page, ON_GITHUB)
    assert all("\n" not in line for line in lines)
    first = lines[0]
    assert first.startswith("::error title=new%3A operator cortex_m%3A%3Apad.out::")
    for model in ("ds_cnn", "resnet8", "mobilenet", "padded"):
        assert f"{M55}/{model}" in first
    assert "%0Afirmware sources: aaaaaaaaaaaa… -> bbbbbbbbbbbb…" in first
    assert lines[-1].startswith("::warning title=nothing is known of::")
    assert f"{U55}/resnet8, {U85}/never-run" in lines[-1]
    assert len(lines) == len(page.groups) + 1


def test_elsewhere_nothing_is_said(page: Comparison) -> None:
    assert workflow_commands(page, {}) == []
    append_to_step_summary(summary(page), {})


def test_a_file_of_the_repository_is_named(page: Comparison) -> None:
    """As the runner knows it, with its line; one elsewhere on the disk is not."""
    group = page.groups[-1]
    (case,) = group.cases[:1]
    assert case.row is not None

    def annotated(facts: dict[str, object], model: str = "add") -> str:
        cause = Cause("bad_target", "unknown key", None, facts)
        changed = replace(case.row, cause=cause, model=model)  # type: ignore[type-var]
        only = replace(page, cases=(replace(case, tries=(changed,)),))
        return workflow_commands(only, ON_GITHUB)[0]

    board = {"file": "/home/runner/work/it/boards/my, board.yaml", "line": 7}
    assert annotated(board).startswith("::error file=boards/my%2C board.yaml,line=7,title=")
    assert annotated({"file": "/etc/x.yaml", "line": 7}).startswith("::error title=")
    assert annotated({}, "models/mine.py").startswith("::error file=models/mine.py,title=")


def test_there_are_no_more_than_github_shows(tmp_path: Path) -> None:
    history, of = many(tmp_path, 4, 1)
    rows = [
        row(1, f"board-{n}", "x", "FAULT", cause=Cause(f"kind{n}", "", None)) for n in range(30)
    ]
    history.append([replace(one, night="n9", verdict=Verdict.FAULT) for one in rows])
    planned = replace(night(9, rows), began="2026-04-01T00:00:00+00:00")
    history.begin(planned)
    page = compare(history, planned)
    history.close()
    assert len(page.groups) == 30
    assert len(workflow_commands(page, ON_GITHUB)) == 10
    assert of.id != planned.id


def test_the_summary_has_it_all_and_nothing_in_it_is_markup(
    page: Comparison, tmp_path: Path
) -> None:
    text = summary(page)
    verdict = "6 new failures, 1 still failing, 1 in quarantine; of 2 nothing is known"
    assert text.startswith(f"## every night: {verdict}")
    assert "### operator cortex\\_m::pad.out (4)" in text
    assert "sources aaaaaaaaaaaa… → bbbbbbbbbbbb…" in text
    assert "hil run corstone-300-m55 ds\\_cnn" in text
    assert "**infrastructure**: corstone-300-u55-128/resnet8" in text
    assert "<script>" not in text
    assert "<img" not in text
    tables = [line for line in text.splitlines() if line.startswith("| target ")]
    assert len(tables) == 1
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    append_to_step_summary(summary(page), {"GITHUB_STEP_SUMMARY": str(file)})
    assert file.read_text() == f"before\n{text}"
