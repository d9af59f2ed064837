"""Nights as files by templates: the page of one, the index of many, and what CI services show.

GitHub shows ten annotations of a kind for a step, so there is one for each group of failures
(https://docs.github.com/actions/reference/workflow-commands-for-github-actions). Jenkins' xUnit
plugin has the strictest schema of JUnit XML (its ``junit-10.xsd``): a test case has no attribute
except ``name``, ``time``, ``classname`` and ``group``; ``time`` of a suite has no sign or
exponent. GitLab identifies a test by ``classname`` and ``name`` together, and takes 30 MB
(https://docs.gitlab.com/ci/testing/unit_test_reports).
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.case import is_user_file
from harness.core.safe_text import grouped, listed, workflow_command
from harness.judge.budget_check import describe_accuracy, is_low
from harness.nightly.history.case_state import NO_ROW, CaseState, Standing
from harness.nightly.history.compare import (
    Comparison,
    FailureGroup,
    compare,
    nights_before,
    short,
    standing,
)
from harness.nightly.history.nights import Night, Row, last_tries
from harness.nightly.history.steps import WATCHED, Watched
from harness.report.history import reproducing, when
from harness.report.templates import filled
from harness.system.files import disk_errors, write_whole

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy

HERE = Path(__file__).parent


def write_page(file: Path, comparison: Comparison, template: str = "night.html") -> None:
    """``template``: also night.xml, which is JUnit's, a suite for each target. Raises DiskError."""
    with disk_errors(f"writing {file.name}"):
        write_whole(file, render(comparison, template))


def render(comparison: Comparison, template: str = "night.html") -> str:
    """Return the page of a night, one file.

    Nothing is fetched, and no script runs but its own, which the policy names by its digest
    (Content Security Policy Level 3, section 2.3.1)."""
    script = (HERE / "night.js").read_text("utf-8")
    values = {
        "comparison": comparison,
        "matrix": matrix_of(comparison.cases),
        "anchors": {case.case: f"case-{number}" for number, case in enumerate(comparison.cases)},
        "State": CaseState,
        "NO_ROW": NO_ROW,
        "style": (HERE / "night.css").read_text("utf-8"),
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return filled(HERE / template, values, filters())


def filters() -> dict[str, Callable[..., Any]]:
    return {
        "short": short,
        "number": grouped,
        "signed": "{:+,}".format,
        "when": when,
        "command": reproducing,
        "lines": lines_of,
        "trends": trends_of,
        "accuracy": describe_accuracy,
        "low": is_low,
        "key": lambda state: state.name.lower(),
    }


@dataclass(frozen=True)
class ConsoleLine:
    """A line of a console. ``marked``: the cause names it."""

    number: int
    text: str
    marked: bool


def lines_of(case: Standing) -> list[ConsoleLine]:
    row = case.row
    if row is None or row.excerpt is None:
        return []
    marked = None if row.cause is None else row.cause.line
    numbered = enumerate(row.excerpt.lines, row.excerpt.first)
    return [ConsoleLine(number, text, number == marked) for number, text in numbered]


def matrix_of(cases: Sequence[Standing]) -> dict[str, dict[str, list[Standing]]]:
    """Cells by target and model: a target may have a model with more than one firmware."""
    models = dict.fromkeys(_target_and_model(case)[1] for case in cases)
    rows: dict[str, dict[str, list[Standing]]] = {}
    for case in cases:
        target, model = _target_and_model(case)
        rows.setdefault(target, {name: [] for name in models})[model].append(case)
    return rows


def _target_and_model(case: Standing) -> tuple[str, str]:
    """Return target and model of a case; one without a row has only its name."""
    if case.row is not None:
        return case.row.target, case.row.model
    target, _, model = case.case.partition("/")
    return target, model.partition(" [")[0]


@dataclass(frozen=True)
class Trend:
    """A figure over several nights.

    ``points``: the number of the night, the value, and whether the case failed then; ``steps``: the
    nights that begin another level."""

    name: str
    unit: str
    nights: int
    points: tuple[tuple[int, float, bool], ...]
    steps: tuple[int, ...] = ()

    @property
    def values(self) -> list[float]:
        return [value for _, value, _ in self.points]

    @property
    def text(self) -> str:
        first, last = self.values[0], self.values[-1]
        least, most = min(self.values), max(self.values)
        return (
            f"{self.name} over {self.nights} nights: {first:,g} to {last:,g} {self.unit}, "
            f"{least:,g} at least, {most:,g} at most"
        )


_TIME = Watched("time", "time", "s", "total")


def trends_of(case: Standing) -> list[Trend]:
    """Return the figures that two nights of the case have."""
    rows = [*case.earlier, *([] if case.row is None else [case.row])]
    found = []
    for figure in (*WATCHED, _TIME):
        values = [(r.seconds if figure is _TIME else r.metrics).get(figure.metric) for r in rows]
        points = tuple((n, y, rows[n].bad) for n, y in enumerate(values) if y is not None)
        steps = tuple(
            n for s in case.steps if s.figure is figure for n, r in enumerate(rows) if r is s.first
        )
        if len(points) > 1:
            found.append(Trend(figure.title, figure.unit, len(rows), points, steps))
    return found


_MOST_ANNOTATIONS = 10
_NAMED = 8  # cases in an annotation


def workflow_commands(comparison: Comparison, environ: Mapping[str, str]) -> list[str]:
    """Lines for standard output; none outside of GitHub Actions."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return []
    root = environ.get("GITHUB_WORKSPACE", "")
    lines = [_annotation(group, root) for group in comparison.groups]
    if lost := comparison.of(CaseState.LOST):
        lines.append(workflow_command("error", _names(lost), title="gone while they failed"))
    unknown = comparison.of(CaseState.INFRA, CaseState.MISSING)
    if unknown:
        lines.append(workflow_command("warning", _names(unknown), title="nothing is known of"))
    return lines[:_MOST_ANNOTATIONS]


def _annotation(group: FailureGroup, root: str) -> str:
    rows = [case.row for case in group.cases if case.row is not None]
    places = [_named_file(row) for row in rows]
    if len({row.model for row in rows}) == 1 and is_user_file(rows[0].model):
        places.append((rows[0].model, None))
    place = next((_place_in_repository(*each, root) for each in places if each is not None), {})
    changed = "".join(f"\n{c.name}: {short(c.before)} -> {short(c.after)}" for c in group.changed)
    first = group.cases[0].row
    cause = "" if first is None or first.cause is None else f"\n{first.cause.text}"
    title = f"{'new' if group.is_new else 'still failing'}: {group.what}"
    return workflow_command("error", f"{_names(group.cases)}{changed}{cause}", **place, title=title)


def _names(cases: Sequence[Standing]) -> str:
    return listed([case.case for case in cases], _NAMED)


def _named_file(row: Row) -> tuple[str, object] | None:
    facts = (row.cause.facts if row.cause else None) or {}
    return (facts["file"], facts.get("line")) if isinstance(facts.get("file"), str) else None


def _place_in_repository(name: str, line: object, root: str) -> dict[str, object]:
    """Return the place of a file below ``root``, the repository; {} for a file elsewhere."""
    path = Path(name)
    if path.is_absolute():
        if not root or not path.is_relative_to(root):
            return {}
        path = path.relative_to(root)
    return {"file": path, "line": line} if isinstance(line, int) else {"file": path}


def summary(comparison: Comparison) -> str:
    """In Markdown: the counts, what failures share, then the table of targets and models."""
    return render(comparison, "night.md")


@dataclass(frozen=True)
class Course:
    """A case over nights. ``cells``: None for a night that did not plan it."""

    case: str
    cells: tuple[Standing | None, ...]

    @property
    def bad(self) -> int:
        """In how many nights it failed."""
        return sum(cell is not None and cell.state.failing for cell in self.cells)


def courses(nights: Sequence[Night], rows: Sequence[Row]) -> list[Course]:
    """Those that fail most come first. ``nights``: the oldest first."""
    by_night: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_night[row.night].append(row)
    earlier: dict[str, tuple[Row, ...]] = defaultdict(tuple)
    cells: dict[str, list[Standing | None]] = defaultdict(list)
    for number, night in enumerate(nights):
        last = last_tries(by_night[night.id])
        for case in (planned.case for planned in night.plan):
            tries = (last[case],) if case in last else ()
            cells[case] += [None] * (number - len(cells[case]))
            cells[case].append(standing(case, tries, earlier[case], night.alarms))
            earlier[case] += tries
    empty = [None] * len(nights)
    found = [Course(case, tuple((each + empty)[: len(nights)])) for case, each in cells.items()]
    return sorted(found, key=lambda course: (-course.bad, course.case))


def write_index(history: History, night: Night, folder: Path) -> Path:
    """Write the page of all nights. Raises DiskError, and what the history does."""
    nights = [*reversed(nights_before(history, night)), night]
    with disk_errors("writing the index"):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _file(night), render(compare(history, night)))
        there = {each.id: _file(each) for each in nights if (folder / _file(each)).exists()}
        values = {
            "night": night,
            "nights": nights,
            "pages": there,
            "courses": courses(nights, history.rows([each.id for each in nights])),
            "style": (HERE / "night.css").read_text("utf-8"),
        }
        write_whole(folder / "index.html", filled(HERE / "index.html", values, filters()))
    return folder / "index.html"


def _file(night: Night) -> str:
    return f"night-{night.file_name}.html"
