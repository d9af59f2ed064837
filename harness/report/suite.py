"""Reports of ExecuTorch's suites and CI jobs: tables for people, JSON, JUnit and a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.core.safe_text import plain
from harness.core.verdict import Verdict
from harness.report.safe_console import say
from harness.report.templates import filled
from harness.report.terminal import advice
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.results import NPU_MODEL, RESULTS, SuiteReport, worst_first
from harness.system import toolchain
from harness.system.files import disk_errors, write_whole

_COLOURS = {"failed": "red", "unsupported": "yellow", "xfailed": "cyan", "skipped": "blue"}


def print_report(console: Console, report: SuiteReport) -> None:
    for test in worst_first(report.tests):
        if test.cause:
            result = (test.result, _COLOURS.get(test.result, "green"))
            say(console, Text.assemble(result, plain(f" {test.id}: {test.cause}")))
    console.print(_table(report))
    if missing := report.operators_missing():
        console.print("Operators that programs need and the runner lacks (tests):")
        for operator, tests in missing.items():
            say(console, f"  {operator} ({len(tests)})")
    for complaint in report.complaints:
        say(console, complaint, "red")
    beyond = sum(test.cause.startswith(NPU_MODEL) for test in report.tests)
    template = Path(__file__).with_name("suite.txt")
    for line in filled(template, {"report": report, "beyond": beyond}, {}).splitlines():
        say(console, line)


def _table(report: SuiteReport) -> Table:
    groups: dict[str, Counter[str]] = {}
    for test in report.tests:
        groups.setdefault(test.group, Counter())[test.result] += 1
    table = Table("operator", *RESULTS, box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for group in sorted(groups, key=lambda name: ("/" in name, name)):
        counts = groups[group]
        table.add_row(escape(group), *(_cell(result, counts[result]) for result in RESULTS))
    return table


def _cell(result: str, count: int) -> str:
    if not count:
        return "[dim]-[/]"
    return f"[{_COLOURS[result]}]{count}[/]" if result in _COLOURS else str(count)


def write_json(report: SuiteReport, path: Path) -> None:
    _write(path, json.dumps(report.as_json(), indent=1) + "\n")


def _write(path: Path, content: str) -> None:
    with disk_errors("writing the report"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def write_junit(report: SuiteReport, path: Path) -> None:
    """One ``testcase`` per test; expected failures and what is not installed are ``skipped``."""
    template = Path(__file__).with_name("suite.xml")
    _write(path, filled(template, {"report": report}, {}))


_OF_JOBS = {JobVerdict.PASSED: "green", JobVerdict.UNPROVEN: "yellow", JobVerdict.FAILED: "red"}


def print_jobs(console: Console, results: Sequence[JobResult]) -> None:
    table = Table("job", "verdict", "script", "calls", "tests", "exactness", "s", box=None)
    table.columns[0].overflow = table.columns[5].overflow = "fold"
    for result in results:
        if colour := _OF_JOBS.get(result.verdict):
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


def write_jobs_page(path: Path, results: Sequence[JobResult]) -> None:
    """Write the page of CI jobs. Raises DiskError, ToolMissing."""
    tools = ("qemu-system-arm", "arm-none-eabi-gcc")
    values = {
        "rows": [(result, _cells(result), "; ".join(_remarks(result))) for result in results],
        "ran": sum(result.verdict is not JobVerdict.NOT_RUN for result in results),
        "commit": results[0].commit,
        "tools": ", ".join(f"{name} {toolchain.require(name).version}" for name in tools),
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
    }
    with disk_errors("writing the report"):
        write_whole(path, filled(Path(__file__).with_name("executorch_ci.md"), values, {}))
