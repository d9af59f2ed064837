"""Runs on GitHub's page of a step: a table of verdicts, and each note once.

The page: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.plain import as_markdown
from harness.run.record import RunRecord


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


def write_summary(runs: Sequence[RunSummary], environ: Mapping[str, str]) -> None:
    """Append to the step's page, when there is one. Raises OSError."""
    name = environ.get("GITHUB_STEP_SUMMARY")
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(summary(runs))


def summary(runs: Sequence[RunSummary]) -> str:
    lines = ["## Runs", "", "| case | verdict | cause |", "|---|---|---|"]
    for run in runs:
        cells = (run.title, run.verdict_text, run.cause)
        lines.append(f"| {' | '.join(map(as_markdown, cells))} |")
    lines.append("")
    for note, titles in by_note(runs).items():
        lines.append(f"- note: {as_markdown(note)} ({as_markdown(', '.join(titles))})")
    return "\n".join(lines) + "\n\n"
