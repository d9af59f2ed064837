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

from harness.config.case import is_user_file
from harness.core.plain import as_markdown, plain, workflow_command
from harness.nightly.history.compare import Comparison
from harness.nightly.history.groups import Group, short
from harness.nightly.history.model import Row
from harness.nightly.history.standing import NO_ROW, Standing, State
from harness.report.history import reproducing
from harness.report.page.view import lines_of, matrix_of
from harness.report.summary import table
from harness.system.files import disk_errors, write_whole

_MOST_ANNOTATIONS = 10
_MOST_CASES = 200  # of a table: a summary may have 1 MiB
_NAMED = 8  # cases in an annotation
_MOVED = 10  # cases that pass and have other figures


def workflow_commands(page: Comparison, environ: Mapping[str, str]) -> list[str]:
    """Lines for standard output; none outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    root = environ.get("GITHUB_WORKSPACE", "")
    lines = [_annotation(group, root) for group in page.groups]
    if lost := page.of(State.LOST):
        lines.append(workflow_command("error", _names(lost), title="gone while they failed"))
    unknown = page.of(State.INFRA, State.MISSING)
    if unknown:
        lines.append(workflow_command("warning", _names(unknown), title="nothing is known of"))
    return lines[:_MOST_ANNOTATIONS]


def _annotation(group: Group, root: str) -> str:
    rows = [case.row for case in group.cases if case.row is not None]
    places = [_named_file(row) for row in rows]
    if len({row.model for row in rows}) == 1 and is_user_file(rows[0].model):
        places.append((rows[0].model, None))
    place = next((_place(*each, root) for each in places if each is not None), {})
    changed = "".join(f"\n{c.name}: {short(c.before)} -> {short(c.after)}" for c in group.changed)
    first = group.cases[0].row
    cause = "" if first is None or first.cause is None else f"\n{first.cause.text}"
    title = f"{'new' if group.is_new else 'still failing'}: {group.what}"
    return workflow_command("error", f"{_names(group.cases)}{changed}{cause}", **place, title=title)


def _names(cases: Sequence[Standing]) -> str:
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    return ", ".join(case.case for case in cases[:_NAMED]) + more


def _named_file(row: Row) -> tuple[str, object] | None:
    """The file that a cause names, and its line if it says one."""
    facts = (row.cause.facts if row.cause else None) or {}
    return (facts["file"], facts.get("line")) if isinstance(facts.get("file"), str) else None


def _place(name: str, line: object, root: str) -> dict[str, object]:
    """Of a file of the repository, which is at ``root``; {} for another one."""
    path = Path(name)
    if path.is_absolute():
        if not root or not path.is_relative_to(root):
            return {}
        path = path.relative_to(root)
    return {"file": path, "line": line} if isinstance(line, int) else {"file": path}


def summary(page: Comparison) -> str:
    """In Markdown: the counts, what failures share, then the table of targets and models."""
    lines = [f"## {as_markdown(page.night.suite)}: {as_markdown(page.verdict)}", ""]
    lines += [" · ".join(f"{s.sign} {count} {s}" for s, count in page.counts.items()), ""]
    for group in page.groups:
        lines += _group(group)
    listed = {case.case for group in page.groups for case in group.cases}
    for state in page.counts:
        cases = [case for case in page.of(state) if case.case not in listed]
        if cases and state not in (State.PASSING, State.SKIPPED):
            lines += [f"**{state}**: {as_markdown(', '.join(c.case for c in cases))}", ""]
    lines += [f"- {as_markdown(f'{case.case}: {delta}')}" for case, delta in page.moved[:_MOVED]]
    if len(page.cases) <= _MOST_CASES:
        lines += ["", *_matrix(page)]
    return "\n".join(lines) + "\n"


def _group(group: Group) -> list[str]:
    lines = [f"### {as_markdown(group.what)} ({len(group.cases)})", ""]
    if group.changed:
        changes = (f"{c.name} {short(c.before)} → {short(c.after)}" for c in group.changed)
        lines += [f"Since the last PASS: {as_markdown(', '.join(changes))}", ""]
    lines += table(
        ("case", "", "verdict", "cause", "reproduce"), map(_cells, group.cases[:_MOST_CASES])
    )
    return [*lines, ""]


def _cells(case: Standing) -> tuple[object, ...]:
    row = case.row
    assert row is not None  # else it would not be in a group
    cause = "" if row.cause is None else f"{row.cause.kind}: {row.cause.text}"
    return case.case, f"{case.state.sign} {case.state}", row.verdict, cause, reproducing(row)


def _matrix(page: Comparison) -> list[str]:
    matrix = matrix_of(page.cases)
    rows = (
        (target, *(" ".join(f"{c.state.sign} {c.state}" for c in cell) for cell in cells.values()))
        for target, cells in matrix.items()
    )
    return [*table(("target", *next(iter(matrix.values()), ())), rows), ""]


def write_junit(file: Path, page: Comparison) -> None:
    """A suite for each target. Raises DiskError."""
    root = ElementTree.Element(
        "testsuites", {"name": plain(page.night.suite), **_counts(page.cases)}
    )
    for target, cells in matrix_of(page.cases).items():
        cases = [case for cell in cells.values() for case in cell]
        root.append(_suite(page, target, cases))
    with disk_errors("writing the JUnit file"):
        write_whole(file, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(page: Comparison, target: str, cases: Sequence[Standing]) -> ElementTree.Element:
    skipped = sum(case.state.junit == "skipped" for case in cases)
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


def _counts(cases: Sequence[Standing]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.state.failing for case in cases)),
        "errors": str(sum(case.state.junit == "error" for case in cases)),
        "time": f"{sum(_seconds(case) for case in cases):.3f}",
    }


def _seconds(case: Standing) -> float:
    return 0.0 if case.row is None else case.row.seconds.get("total", 0.0)


def _case(target: str, case: Standing) -> ElementTree.Element:
    name = case.case.removeprefix(f"{target}/")
    element = ElementTree.Element(
        "testcase", classname=plain(target), name=plain(name), time=f"{_seconds(case):.3f}"
    )
    row = case.row
    kind = str(case.state) if row is None else str(row.verdict)
    if tag := case.state.junit:
        message = plain(_message(case))
        ElementTree.SubElement(element, tag, type=kind, message=message).text = _text(case)
    for earlier in case.tries[:-1]:
        cause = "" if earlier.cause is None else f"{earlier.cause.kind}: {earlier.cause.text}"
        tag = "flakyError" if row is not None and row.good else "rerunError"
        ElementTree.SubElement(element, tag, type=str(earlier.verdict), message=plain(cause))
    return element


def _message(case: Standing) -> str:
    """In one line: whether it is new, and what it is."""
    row = case.row
    if row is None:
        return NO_ROW[case.state]
    cause = "" if row.cause is None else f" {row.cause.kind}: {row.cause.text}"
    why = f" ({row.quarantined})" if row.quarantined else ""
    flaky = f" ({case.flaky})" if case.flaky else ""
    return f"{case.state}{why}{flaky}: {row.verdict}{cause}"


def _text(case: Standing) -> str:
    """What to look at, and how to see it at one's desk."""
    lines = [f"{'>' if n.marked else ' '} {n.number:>6} {n.text}" for n in lines_of(case)]
    lines += [f"{change.name}: {change.before} -> {change.after}" for change in case.changed]
    lines += [] if case.row is None else [f"$ {reproducing(case.row)}"]
    return plain("\n".join(lines))
