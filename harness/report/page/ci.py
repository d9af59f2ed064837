"""A night as CI services show it: GitHub's annotations and step summary, and JUnit XML.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions; a step shows ten
annotations of a kind, so there is one for each group of failures.

Of the readers of JUnit XML, Jenkins' xUnit plugin has the strictest schema (its ``junit-10.xsd``):
no attribute of a test case but ``name``, ``time``, ``classname`` and ``group``, ``time`` of a suite
without sign or exponent. GitLab knows a test by ``classname`` and ``name`` together, and takes
30 MB
(https://docs.gitlab.com/ci/testing/unit_test_reports).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from harness.core.plain import as_markdown, plain, workflow_command
from harness.nightly.history.compare import State
from harness.report.history import name_of
from harness.report.page.groups import Group, short
from harness.report.page.view import CaseView, Page
from harness.report.summary import table
from harness.system.files import disk_errors, write_whole

_MOST_ANNOTATIONS = 10
_MOST_CASES = 200  # of a table: a summary may have 1 MiB
_NAMED = 8  # cases in an annotation


def workflow_commands(page: Page, environ: Mapping[str, str]) -> list[str]:
    """Lines for standard output; none outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    root = environ.get("GITHUB_WORKSPACE", "")
    lines = [_annotation(group, root) for group in page.groups]
    unknown = page.of(State.INFRA.name, State.MISSING.name)
    if unknown:
        lines.append(workflow_command("warning", _names(unknown), title="nothing is known of"))
    return lines[:_MOST_ANNOTATIONS]


def _annotation(group: Group[CaseView], root: str) -> str:
    new = any(case.state is State.NEW for case in group.cases)
    place: dict[str, object] = next(filter(None, (_place(c, root) for c in group.cases)), {})
    changed = "".join(
        f"\n{name_of(c)}: {short(c.before)} -> {short(c.after)}" for c in group.changed
    )
    first = group.cases[0].row
    cause = "" if first is None or first.cause is None else f"\n{first.cause.text}"
    title = f"{'new' if new else 'still failing'}: {group.what}"
    return workflow_command("error", f"{_names(group.cases)}{changed}{cause}", **place, title=title)


def _names(cases: tuple[CaseView, ...]) -> str:
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return ", ".join(case.case for case in cases[:_NAMED]) + more


def _place(case: CaseView, root: str) -> dict[str, object]:
    """The file of the repository that a cause names, or the user's model; {} for none."""
    row = case.row
    if row is None:
        return {}
    facts = (row.cause.facts if row.cause else None) or {}
    name, line = facts.get("file"), facts.get("line")
    if not isinstance(name, str):
        name, line = (row.model, None) if row.model.endswith(".py") else (None, None)
    if name is None:
        return {}
    path = Path(name)
    if path.is_absolute():
        if not root or not path.is_relative_to(root):
            return {}
        path = path.relative_to(root)
    return {"file": path, "line": line} if isinstance(line, int) else {"file": path}


def summary(page: Page) -> str:
    """In Markdown: the counts, what failures share, then the table of targets and models."""
    lines = [f"## {as_markdown(page.night.suite)}: {as_markdown(page.verdict)}", ""]
    lines += [" · ".join(f"{sign} {count} {state}" for state, sign, count in page.counts), ""]
    for group in page.groups:
        lines += _group(group)
    for state in (State.INFRA, State.MISSING, State.QUARANTINED, State.FIXED):
        if cases := page.of(state.name):
            lines += [f"**{state}**: {as_markdown(', '.join(c.case for c in cases))}", ""]
    if len(page.cases) <= _MOST_CASES:
        lines += _matrix(page)
    return "\n".join(lines) + "\n"


def _group(group: Group[CaseView]) -> list[str]:
    lines = [f"### {as_markdown(group.what)} ({len(group.cases)})", ""]
    if group.changed:
        changes = (
            f"{name_of(c)} {short(c.before)} → {short(c.after) or 'not known'}"
            for c in group.changed
        )
        lines += [f"Since the last PASS: {as_markdown(', '.join(changes))}", ""]
    lines += table(
        ("case", "", "verdict", "cause", "reproduce"), map(_cells, group.cases[:_MOST_CASES])
    )
    return [*lines, ""]


def _cells(case: CaseView) -> tuple[object, ...]:
    row = case.row
    assert row is not None  # else it would not be in a group
    cause = "" if row.cause is None else f"{row.cause.kind}: {row.cause.text}"
    return case.case, f"{case.sign} {case.state}", row.verdict, cause, case.command


def _matrix(page: Page) -> list[str]:
    rows = (
        (target, *(" ".join(f"{case.sign} {case.state}" for case in cell) for cell in cells))
        for target, cells in page.matrix.rows
    )
    return [*table(("target", *page.matrix.models), rows), ""]


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
    attributes = {
        "name": plain(target),
        "timestamp": page.night.began[:19],
        "hostname": plain(page.night.host),
        "skipped": str(skipped),
    }
    suite = ElementTree.Element("testsuite", {**attributes, **_counts(cases)})
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
    element = ElementTree.Element(
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
            ElementTree.SubElement(element, tag, type=kind, message=message).text = _text(case)
    for earlier in case.tries[:-1]:
        cause = "" if earlier.cause is None else f"{earlier.cause.kind}: {earlier.cause.text}"
        tag = "flakyError" if row is not None and row.good else "rerunError"
        ElementTree.SubElement(element, tag, type=str(earlier.verdict), message=plain(cause))
    return element


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
    lines = [f"{'>' if line.marked else ' '} {line.number:>6} {line.text}" for line in case.lines]
    lines += [f"{name_of(c)}: {c.before} -> {c.after or 'not known'}" for c in case.changed]
    if case.command:
        lines.append(f"$ {case.command}")
    return plain("\n".join(lines))
