"""Runs on GitHub's page of a step: a table of verdicts, and each note once.

The page: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.core.safe_text import as_markdown
from harness.run.record import RunRecord
from harness.system.files import disk_errors


@dataclass(frozen=True)
class RunSummary:
    """The part of a record that every front end shows. ``cause`` is empty for a PASS."""

    title: str
    verdict_text: str
    tolerance_lsb: float = 0.0
    cause: str = ""
    notes: tuple[str, ...] = ()


def summarise(record: RunRecord) -> RunSummary:
    cause = "" if record.cause is None else f"{record.cause.kind}: {record.cause.text}"
    return RunSummary(record.title, record.verdict_text, record.tolerance_lsb, cause, record.notes)


def by_note(runs: Iterable[RunSummary]) -> dict[str, list[str]]:
    """Each note with the titles of the runs it holds for."""
    notes: dict[str, list[str]] = {}
    for run in runs:
        for note in run.notes:
            notes.setdefault(note, []).append(run.title)
    return notes


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def append_to_step_summary(markdown: str, environ: Mapping[str, str]) -> None:
    """To the page of the CI step, when there is one. Raises DiskError."""
    if name := environ.get(STEP_SUMMARY):
        with (
            disk_errors("writing the step summary"),
            Path(name).open("a", encoding="utf-8") as file,
        ):
            file.write(markdown)


def summary_of_runs(runs: Iterable[RunSummary]) -> str:
    runs = list(runs)
    lines = ["## Runs", "", "| case | verdict | cause |", "|---|---|---|"]
    for run in runs:
        cells = map(as_markdown, (run.title, run.verdict_text, run.cause))
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    for note, titles in by_note(runs).items():
        lines.append(f"- note: {as_markdown(note)} ({as_markdown(', '.join(titles))})")
    return "\n".join(lines) + "\n\n"
