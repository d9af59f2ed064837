"""The report on ExecuTorch's CI jobs: a table for a terminal, a page for a repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.core.safe_text import plain
from harness.core.verdict import Verdict
from harness.report.safe_console import say
from harness.report.templates import filled
from harness.report.terminal import advice
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.ci.workspace import PROVIDED
from harness.system import toolchain
from harness.system.files import disk_errors, write_whole

_COLOURS = {JobVerdict.PASSED: "green", JobVerdict.UNPROVEN: "yellow", JobVerdict.FAILED: "red"}


def print_jobs(console: Console, results: Sequence[JobResult]) -> None:
    table = Table("job", "verdict", "script", "calls", "tests", "exactness", "s", box=None)
    table.columns[0].overflow = table.columns[5].overflow = "fold"
    for result in results:
        if colour := _COLOURS.get(result.verdict):
            verdict = f"[{colour}]{result.verdict}[/]"
            table.add_row(escape(result.name), verdict, *map(escape, _cells(result)))
    if table.rows:
        console.print(table)
    for result in results:
        for text in _remarks(result):
            say(console, plain(f"{result.name} ({result.place}): {text}"))
    counts = Counter(result.verdict for result in results)
    say(console, ", ".join(f"{counts[verdict]} {verdict}" for verdict in counts))


def _remarks(result: JobResult) -> tuple[str, ...]:
    """Reasons, what to do about each call of the FVP that proves nothing, and notes."""
    calls = (call for call in result.calls if call.kind and not call.proven)
    advised = dict.fromkeys(advice(Verdict(call.verdict), call.kind).do for call in calls)
    return (*result.reasons, *advised, *result.notes)


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


def write_page(path: Path, results: Sequence[JobResult]) -> None:
    """Write the page of CI jobs. Raises DiskError, ToolMissing."""
    tools = ("qemu-system-arm", "arm-none-eabi-gcc")
    values = {
        "rows": [(result, _cells(result), "; ".join(_remarks(result))) for result in results],
        "ran": sum(result.verdict is not JobVerdict.NOT_RUN for result in results),
        "commit": results[0].commit,
        "tools": ", ".join(f"{name} {toolchain.require(name).version}" for name in tools),
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "provided": PROVIDED,
    }
    with disk_errors("writing the report"):
        write_whole(path, filled(Path(__file__).with_name("executorch_ci.md"), values, {}))
