"""Checks the verdict of a test's run, and reports it.

A test that takes a run gets one that is PASS, or one whose verdict it named beforehand: a test that
forgets to check the verdict must not be green. The facts of a verdict (a tolerance, a note) reach
JUnit, the terminal and GitHub's step summary. A test's properties carry them, because pytest-xdist
brings those from the workers.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.errors import HarnessError, Unknown, UsageError
from harness.core.safe_text import listed, plain
from harness.core.verdict import Verdict

if TYPE_CHECKING:
    from harness.report.summary import RunSummary
    from harness.run.record import RunRecord

EXPECT = "hil_expect"
RECORD: pytest.StashKey[RunRecord] = pytest.StashKey()
_MOST_TITLES = 4  # after a note at the terminal; JUnit and the summary have all
_OUTCOMES = ("passed", "failed", "error", "xfailed", "xpassed")


def expected_verdicts(item: pytest.Item) -> tuple[Verdict, ...]:
    """Return the verdicts that a test's run may end in.

    Raises UsageError if the marker names none."""
    marker = item.get_closest_marker(EXPECT)
    if marker is None:
        return (Verdict.PASS,)
    words = [str(word) for word in marker.args]
    for word in words:
        if word not in Verdict.__members__:
            raise Unknown(f"{EXPECT} names no verdict: {word!r}", word, Verdict.__members__)
    if marker.kwargs or not words:
        raise UsageError(f"{EXPECT} takes verdicts", hint=f'for example {EXPECT}("MISMATCH")')
    return tuple(Verdict[word] for word in words)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Before the test, and after it: it may have asked for its run by name meanwhile."""
    _require_expected_verdict(item)
    result = yield
    _require_expected_verdict(item)
    return result


def _require_expected_verdict(item: pytest.Item) -> None:
    record = item.stash.get(RECORD, None)
    if record is None:
        return
    expected = expected_verdicts(item)
    if record.verdict in expected:
        return
    if expected != (Verdict.PASS,):
        wanted = f"the test expects {' or '.join(expected)} ({EXPECT})"
    else:
        wanted = f'a test that wants to look at it says @pytest.mark.{EXPECT}("{record.verdict}")'
    pytest.fail(plain(f"{verdict_text_of(record)}\n{wanted}"), pytrace=False)


def require_pass(record: RunRecord) -> None:
    """Fails the test, with the cause as its whole message, unless the verdict is PASS.

    Use it where the verdict may be another one (``hil_expect``), or for a record that is not from
    the ``hil_run`` fixture.
    """
    if not record.verdict.passed:
        pytest.fail(plain(verdict_text_of(record)), pytrace=False)


def verdict_text_of(record: RunRecord) -> str:
    """Return the verdict with its cause, its notes and where its evidence is."""
    lines = [f"{record.title}: {record.verdict_text}{cause_text(record)}"]
    lines += [f"note: {note}" for note in record.notes]
    return "\n".join([*lines, f"evidence: {record.run_dir}"])


def cause_text(record: RunRecord) -> str:
    """Return the cause, to follow the verdict in a line; "" for a PASS."""
    return "" if record.cause is None else f" {record.cause.label}: {record.cause.text}"


def error_text(error: HarnessError) -> str:
    """Return an error that ended a test before it had a run."""
    hint = f"\n{error.hint}" if error.hint else ""
    return f"{error.verdict} {error.kind}: {error.message}{hint}"


def junit_properties(record: RunRecord) -> Iterator[tuple[str, Any]]:
    """For JUnit. A name may be there more than once (``note``)."""
    yield "case", record.title
    yield "verdict", record.verdict.value
    yield "verdict_text", record.verdict_text
    yield "tolerance_lsb", record.tolerance_lsb
    if record.cause is not None:
        yield "cause", cause_text(record).strip()
    yield from (("note", note) for note in record.notes)
    yield "firmware", record.firmware_label or record.source
    yield "run_dir", record.run_dir
    if record.simulator is not None:
        yield "simulator", record.simulator.name.value
    yield from sorted(record.metrics.items())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each note once, with the cases it holds for, and every verdict with a tolerance."""
    runs = _reported_runs(terminalreporter)
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
        terminalreporter.line(f"note: {note} ({listed(titles, _MOST_TITLES)})")
    try:
        append_to_step_summary(summary_of_runs(runs), os.environ)
    except HarnessError as error:
        terminalreporter.line(f"hil: {error.message}", red=True)


def _reported_runs(reporter: pytest.TerminalReporter) -> list[RunSummary]:
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
    """Fail a session of our tests in which nothing ran."""
    config = session.config
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    ran = any(reporter.stats.get(outcome) for outcome in _OUTCOMES)
    skipped = any(map(_is_hil_test, reporter.stats.get("skipped", ())))
    if any(_is_hil_test(r) for outcome in _OUTCOMES for r in reporter.stats.get(outcome, ())):
        from harness.run.prune import prune_when_due

        prune_when_due()
    if skipped and not ran and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        reporter.write_line("hil: nothing ran, so nothing was proven", red=True)


def _is_hil_test(report: Any) -> bool:
    """Whether a test that was skipped asked for a case.

    A report has a test's markers and properties, which is all that comes from pytest-xdist's
    workers."""
    properties = dict(getattr(report, "user_properties", ()))
    return "hil_cases" in getattr(report, "keywords", ()) or "verdict" in properties
