"""A Report as a table for people and as JUnit for CI."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.conformance.model import RESULTS, Report, SuiteResult, worst_first
from harness.conformance.verdicts import NPU_MODEL
from harness.errors.plain import plain
from harness.system.files import disk_errors, write_whole

_COLOURS = {"failed": "red", "unsupported": "yellow", "xfailed": "cyan", "skipped": "blue"}


def print_report(console: Console, report: Report) -> None:
    for verdict in worst_first(report.verdicts):
        if verdict.cause:
            colour = _COLOURS.get(verdict.result, "green")
            what = escape(plain(f"{verdict.id}: {verdict.cause}"))
            text = f"[{colour}]{verdict.result}[/] {what}"
            console.print(text, soft_wrap=True, highlight=False)
    console.print(_table(report))
    if missing := report.operators_missing():
        console.print("Operators that programs asked for and the build lacks (tests):")
        for operator, tests in missing.items():
            console.print(f"  {operator} ({len(tests)})", highlight=False, markup=False)
    for complaint in report.complaints:
        console.print(f"[red]{escape(plain(complaint))}[/]")
    for line in _last_lines(report):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _last_lines(report: Report) -> Iterator[str]:
    counts = ", ".join(f"{count} {result}" for result, count in report.summary.items())
    if report.note:
        yield report.note
    if report.on_target < len(report.verdicts):
        yield f"{report.on_target} of {len(report.verdicts)} tests run something on the target"
    if report.from_cache:
        yield f"{report.from_cache} of them were simulated from what an earlier run exported"
    for why, count in report.left_out.items():
        yield f"{count} tests were left out: {why}"
    exact, compared = report.bit_exact
    if exact < compared:
        yield f"{exact} of {compared} tests that passed are bit for bit the reference"
    beyond = sum(v.cause.startswith(NPU_MODEL) for v in report.verdicts)
    if beyond:
        share = 100 * beyond / len(report.verdicts)
        yield f"beyond the NPU model: {beyond} of {len(report.verdicts)} tests ({share:.1f} %)"
    whose = "" if report.firmware == "bundled" else f" [{report.firmware}]"
    if report.exporter != "wheel":
        yield f"the suite and its exporter: {report.exporter}"
    yield f"{report.suite}{whose} on {report.simulator}: {counts} in {report.seconds:.0f} s"


def _table(report: Report) -> Table:
    groups: dict[str, Counter[str]] = {}
    for verdict in report.verdicts:
        groups.setdefault(verdict.group, Counter())[verdict.result] += 1
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


def write_json(report: Report, path: Path) -> None:
    with disk_errors("writing the report"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(report.as_json(), indent=1) + "\n")


def write_junit(report: Report, path: Path) -> None:
    """One ``testcase`` per test; expected failures and what is not installed are ``skipped``."""
    counts = report.summary
    suite = ElementTree.Element(
        "testsuite",
        name=report.suite,
        tests=str(len(report.verdicts)),
        failures=str(counts["failed"]),
        errors=str(len(report.complaints)),
        skipped=str(counts["xfailed"] + counts["skipped"] + counts["unsupported"]),
        time=f"{report.seconds:.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="firmware", value=report.firmware)
    suite.extend(_case(verdict) for verdict in report.verdicts)
    suite.extend(_complaints(report))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    with disk_errors("writing the report"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _case(verdict: SuiteResult) -> ElementTree.Element:
    file, _, name = verdict.id.partition("::")
    case = ElementTree.Element(
        "testcase", classname=plain(file), name=plain(name or file), time=f"{verdict.seconds:.3f}"
    )
    if verdict.result == "failed":
        ElementTree.SubElement(case, "failure", message=plain(verdict.cause))
    elif verdict.result != "passed":
        ElementTree.SubElement(case, "skipped", type=verdict.result, message=plain(verdict.cause))
    return case


def _complaints(report: Report) -> Iterator[ElementTree.Element]:
    for complaint in report.complaints:
        what = plain(complaint)
        case = ElementTree.Element("testcase", classname="expectations", name=what, time="0")
        ElementTree.SubElement(case, "error", message=what)
        yield case
