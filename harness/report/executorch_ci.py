"""The report on ExecuTorch's CI jobs: a table for a terminal, a page for a repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.core.safe_text import plain
from harness.report.safe_console import say
from harness.report.templates import filled
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.ci.workspace import PROVIDED
from harness.system.files import disk_errors, write_whole

_COLOURS = {
    JobVerdict.PASSED: "green",
    JobVerdict.UNPROVEN: "yellow",
    JobVerdict.FAILED: "red",
    JobVerdict.NOT_RUN: "dim",
}


def print_jobs(console: Console, results: Sequence[JobResult]) -> None:
    table = Table("job", "verdict", "script", "calls", "tests", "exactness", "s", box=None)
    table.columns[0].overflow = table.columns[5].overflow = "fold"
    ran = [result for result in results if result.verdict is not JobVerdict.NOT_RUN]
    for result in ran:
        verdict = f"[{_COLOURS[result.verdict]}]{result.verdict}[/]"
        words = (result.name, *map(escape, _cells(result)))
        table.add_row(escape(words[0]), verdict, *words[1:])
    if ran:
        console.print(table)
    for result in results:
        for reason in result.reasons:
            say(console, plain(f"{result.name} ({result.place}): {reason}"))
    counts = {v: sum(r.verdict is v for r in results) for v in JobVerdict}
    say(console, ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))


def _cells(result: JobResult) -> tuple[str, ...]:
    """Script, calls, tests, exactness and seconds; nothing of a job that did not run."""
    if result.verdict is JobVerdict.NOT_RUN:
        return ("", "", "", "", "")
    proven = sum(call.proven for call in result.calls)
    return (
        "?" if result.status is None else f"exit {result.status}",
        f"{proven} of {len(result.calls)}" if result.calls else "",
        ", ".join(f"{count} {word}" for word, count in sorted(result.tests.items())),
        result.exactness,
        f"{result.seconds:.0f}",
    )


def write_page(path: Path, results: Sequence[JobResult], facts: Mapping[str, object]) -> None:
    """Raises DiskError."""
    rows = [
        {
            "result": result,
            "cells": _cells(result),
            "remarks": "; ".join(result.reasons or result.notes[:1]),
        }
        for result in results
    ]
    ran = sum(result.verdict is not JobVerdict.NOT_RUN for result in results)
    values = {**facts, "rows": rows, "ran": ran, "provided": PROVIDED}
    with disk_errors("writing the report"):
        write_whole(path, filled(Path(__file__).with_name("executorch_ci.md"), values, {}))
