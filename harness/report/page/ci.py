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

from harness.config.case import is_user_file
from harness.core.safe_text import workflow_command
from harness.nightly.history.case_state import Standing, State
from harness.nightly.history.compare import Comparison
from harness.nightly.history.groups import Group, short
from harness.nightly.history.model import Row
from harness.report.page.render import render
from harness.system.files import disk_errors, write_whole

_MOST_ANNOTATIONS = 10
_NAMED = 8  # cases in an annotation


def workflow_commands(comparison: Comparison, environ: Mapping[str, str]) -> list[str]:
    """Lines for standard output; none outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    root = environ.get("GITHUB_WORKSPACE", "")
    lines = [_annotation(group, root) for group in comparison.groups]
    if lost := comparison.of(State.LOST):
        lines.append(workflow_command("error", _names(lost), title="gone while they failed"))
    unknown = comparison.of(State.INFRA, State.MISSING)
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


def summary(comparison: Comparison) -> str:
    """In Markdown: the counts, what failures share, then the table of targets and models."""
    return render(comparison, "night.md")


def write_junit(file: Path, comparison: Comparison) -> None:
    """A suite for each target. Raises DiskError."""
    with disk_errors("writing the JUnit file"):
        write_whole(file, render(comparison, "night.xml"))
