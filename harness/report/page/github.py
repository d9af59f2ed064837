"""A night on GitHub's page of a job: annotations, and the summary of the step.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions; a step shows ten
annotations of a kind, so there is one for each group of failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.core.plain import as_markdown, workflow_command
from harness.nightly.history.compare import State
from harness.report.identities import name_of
from harness.report.page.causes import short
from harness.report.page.view import CaseView, GroupView, Page

_MOST_ANNOTATIONS = 10
_MOST_CASES = 200  # of a table: a summary may have 1 MiB
_NAMED = 8  # cases in an annotation


def workflow_commands(page: Page, environ: Mapping[str, str]) -> list[str]:
    """Lines for standard output; none outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    root = environ.get("GITHUB_WORKSPACE", "")
    found = [_annotation(group, root) for group in page.groups]
    unknown = page.of(State.INFRA.name, State.MISSING.name)
    if unknown:
        found.append(workflow_command("warning", _names(unknown), title="nothing is known of"))
    return found[:_MOST_ANNOTATIONS]


def _annotation(group: GroupView, root: str) -> str:
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
    said, line = facts.get("file"), facts.get("line")
    if not isinstance(said, str):
        said, line = (row.model, None) if row.model.endswith(".py") else (None, None)
    if said is None:
        return {}
    path = Path(said)
    if path.is_absolute():
        if not root or not path.is_relative_to(root):
            return {}
        path = path.relative_to(root)
    return {"file": path, "line": line} if isinstance(line, int) else {"file": path}


def write_summary(page: Page, environ: Mapping[str, str]) -> None:
    """Append to the step's page, when there is one. Raises OSError."""
    name = environ.get("GITHUB_STEP_SUMMARY")
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(summary(page))


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


def _group(group: GroupView) -> list[str]:
    lines = [f"### {as_markdown(group.what)} ({len(group.cases)})", ""]
    if group.changed:
        said = (
            f"{name_of(c)} {short(c.before)} → {short(c.after) or 'not known'}"
            for c in group.changed
        )
        lines += [f"Since the last PASS: {as_markdown(', '.join(said))}", ""]
    lines += ["| case | | verdict | cause | reproduce |", "|---|---|---|---|---|"]
    for case in group.cases[:_MOST_CASES]:
        row = case.row
        assert row is not None  # else it would not be in a group
        cause = "" if row.cause is None else f"{row.cause.kind}: {row.cause.text}"
        texts = (case.case, f"{case.sign} {case.state}", str(row.verdict), cause, case.command)
        lines.append(f"| {' | '.join(map(as_markdown, texts))} |")
    return [*lines, ""]


def _matrix(page: Page) -> list[str]:
    heads = ["target", *page.matrix.models]
    lines = [f"| {' | '.join(map(as_markdown, heads))} |", "|---" * len(heads) + "|"]
    for target, cells in page.matrix.rows:
        texts = (" ".join(f"{case.sign} {case.state}" for case in cell) for cell in cells)
        lines.append(f"| {' | '.join(map(as_markdown, (target, *texts)))} |")
    return [*lines, ""]
