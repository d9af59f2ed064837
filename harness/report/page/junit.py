"""A night as JUnit XML, as Jenkins and GitLab read it.

Jenkins' xUnit plugin has the strictest schema (its ``junit-10.xsd``): no attribute of a test case
but ``name``, ``time``, ``classname`` and ``group``, ``time`` of a suite without sign or exponent.
GitLab knows a test by ``classname`` and ``name`` together, and takes 30 MB
(https://docs.gitlab.com/ci/testing/unit_test_reports).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from harness.core.plain import plain
from harness.nightly.history.compare import State
from harness.report.identities import name_of
from harness.report.page.view import CaseView, Page
from harness.system.files import disk_errors, write_whole

_FAILURES = (State.NEW, State.STILL)
_ERRORS = (State.INFRA, State.MISSING)
_SKIPPED = (State.SKIPPED, State.QUARANTINED)


def write_junit(file: Path, page: Page) -> None:
    """A suite for each target. Raises DiskError."""
    root = ElementTree.Element(
        "testsuites", {"name": plain(page.night.suite), **_counts(page.cases)}
    )
    for target, cells in page.matrix.rows:
        cases = [case for cell in cells for case in cell]
        root.append(_suite(page, target, cases))
    with disk_errors("writing the JUnit file"):
        write_whole(file, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(page: Page, target: str, cases: Sequence[CaseView]) -> ElementTree.Element:
    skipped = sum(case.state in _SKIPPED for case in cases)
    said = {
        "name": plain(target),
        "timestamp": page.night.began[:19],
        "hostname": plain(page.night.host),
        "skipped": str(skipped),
    }
    suite = ElementTree.Element("testsuite", {**said, **_counts(cases)})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("night", page.night.id), ("harness", page.night.harness)):
        ElementTree.SubElement(properties, "property", name=name, value=plain(value))
    suite.extend(_case(target, case) for case in cases)
    return suite


def _counts(cases: Sequence[CaseView]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.state in _FAILURES for case in cases)),
        "errors": str(sum(case.state in _ERRORS for case in cases)),
        "time": f"{sum(_seconds(case) for case in cases):.3f}",
    }


def _seconds(case: CaseView) -> float:
    return 0.0 if case.row is None else case.row.seconds.get("total", 0.0)


def _case(target: str, case: CaseView) -> ElementTree.Element:
    name = case.case.removeprefix(f"{target}/")
    made = ElementTree.Element(
        "testcase", classname=plain(target), name=plain(name), time=f"{_seconds(case):.3f}"
    )
    row = case.row
    kind = "missing" if row is None else str(row.verdict)
    message = plain(_message(case))
    for state, tag in (
        *((state, "failure") for state in _FAILURES),
        *((state, "error") for state in _ERRORS),
        *((state, "skipped") for state in _SKIPPED),
    ):
        if case.state is state:
            ElementTree.SubElement(made, tag, type=kind, message=message).text = _text(case)
    for one in case.standing.tries[:-1]:
        cause = "" if one.cause is None else f"{one.cause.kind}: {one.cause.text}"
        tag = "flakyError" if row is not None and row.good else "rerunError"
        ElementTree.SubElement(made, tag, type=str(one.verdict), message=plain(cause))
    return made


def _message(case: CaseView) -> str:
    """In one line: whether it is new, and what it is."""
    row = case.row
    if row is None:
        return "planned, and there is no result of it"
    cause = "" if row.cause is None else f" {row.cause.kind}: {row.cause.text}"
    why = f" ({row.quarantined})" if row.quarantined else ""
    return f"{case.state}{why}: {row.verdict}{cause}"


def _text(case: CaseView) -> str:
    """What to look at, and how to see it at one's desk."""
    said = [f"{'>' if line.marked else ' '} {line.number:>6} {line.text}" for line in case.lines]
    said += [f"{name_of(one)}: {one.before} -> {one.after or 'not known'}" for one in case.changed]
    if case.command:
        said.append(f"$ {case.command}")
    return plain("\n".join(said))
