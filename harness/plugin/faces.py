"""What is told of runs beside a test's own outcome: JUnit, the terminal, GitHub's step summary.

Whatever a verdict comes with (a tolerance, a note) reaches all of them. A test's properties carry
it: they are what pytest-xdist brings from the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.errors import HarnessError
from harness.plugin.proof import cause_of

if TYPE_CHECKING:
    from harness.report.summary import RunSummary
    from harness.run.record import RunRecord

_MOST_TITLES = 4  # behind a note at the terminal; JUnit and the summary have all
_OUTCOMES = ("passed", "failed", "error", "xfailed", "xpassed")


def properties(record: RunRecord) -> Iterator[tuple[str, Any]]:
    """For JUnit. A name may be there more than once (``note``)."""
    yield "case", record.title
    yield "verdict", record.verdict.value
    yield "verdict_text", record.verdict_text
    yield "tolerance_lsb", record.tolerance_lsb
    if record.cause is not None:
        yield "cause", cause_of(record).strip()
    yield from (("note", note) for note in record.notes)
    yield "firmware", record.firmware_label or record.source
    yield "run_dir", record.run_dir
    if record.simulator is not None:
        yield "simulator", record.simulator.name.value
    yield from sorted(record.metrics.items())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each note once, with the cases it holds for, and every verdict with a tolerance."""
    runs = _runs(terminalreporter)
    if not runs:
        return
    from harness.report.summary import append_to_step_summary, by_note, summary_of_runs

    notes = by_note(runs)
    tolerant = [run for run in runs if run.tolerance_lsb]
    if notes or tolerant:
        terminalreporter.section("hil: notes")
    for run in tolerant:
        terminalreporter.line(f"{run.title}: {run.verdict_text}")
    for note, titles in notes.items():
        more = f" and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else ""
        terminalreporter.line(f"note: {note} ({', '.join(titles[:_MOST_TITLES])}{more})")
    try:
        append_to_step_summary(summary_of_runs(runs), os.environ)
    except HarnessError as error:
        terminalreporter.line(f"hil: {error.message}", red=True)


def _runs(reporter: pytest.TerminalReporter) -> list[RunSummary]:
    runs: dict[str, RunSummary] = {}
    for outcome in _OUTCOMES:
        for report in reporter.stats.get(outcome, ()):
            properties = list(getattr(report, "user_properties", ()))
            if {"case", "verdict_text", "tolerance_lsb"} <= {name for name, _ in properties}:
                runs[report.nodeid] = _summary(properties)
    return list(runs.values())


def _summary(properties: Sequence[tuple[str, object]]) -> RunSummary:
    from harness.report.summary import RunSummary  # few sessions have one

    fields = dict(properties)
    return RunSummary(
        title=str(fields["case"]),
        verdict_text=str(fields["verdict_text"]),
        tolerance_lsb=float(str(fields["tolerance_lsb"])),
        cause=str(fields.get("cause", "")),
        notes=tuple(str(value) for name, value in properties if name == "note"),
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A session of our tests in which nothing ran is not a success."""
    config = session.config
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    ran = any(reporter.stats.get(outcome) for outcome in _OUTCOMES)
    ours = any(map(_is_ours, reporter.stats.get("skipped", ())))
    if any(_is_ours(r) for outcome in _OUTCOMES for r in reporter.stats.get(outcome, ())):
        from harness.run.prune import prune_when_due

        prune_when_due()
    if ours and not ran and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        reporter.write_line("hil: nothing ran, so nothing was proven", red=True)


def _is_ours(report: Any) -> bool:
    """Whether a test that was skipped asked for a case. A report has a test's markers and
    properties, which is all that comes from pytest-xdist's workers."""
    properties = dict(getattr(report, "user_properties", ()))
    return "hil_cases" in getattr(report, "keywords", ()) or "verdict" in properties
