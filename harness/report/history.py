"""Shows nights in the terminal.

A night with new failures first; the runs of a case, since when it fails and what changed; what is
flaky."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from harness.core.safe_text import grouped, listed
from harness.firmware.source import label
from harness.nightly.history.case_state import CaseState, FirstBad, Flaky, Standing, deltas_of
from harness.nightly.history.compare import Comparison, short
from harness.nightly.history.nights import Row
from harness.report.safe_console import say
from harness.report.summary import RunSummary, by_note

_COLUMNS = ("time", "verdict", "cause", "bytes", "ticks", "seconds", "night")
_LINE = "{:16}  {:12} {:18} {:>11} {:>13} {:>8}  {}"
_MOST_FIGURES = 6
_MOST_MOVED = 10  # cases with other figures


def print_case(console: Console, case: str, rows: Sequence[Row], failure: FirstBad | None) -> None:
    """Its runs, and since when it fails or when it last did."""
    say(console, case, "bold")
    say(console, _LINE.format(*_COLUMNS), "dim")
    for row in rows:
        cells = (
            when(row.time),
            str(row.verdict),
            "" if row.cause is None else row.cause.kind,
            grouped(row.metrics.get("pte_bytes")),
            grouped(row.metrics.get("ticks_set0")),
            f"{row.seconds['total']:.1f}" if "total" in row.seconds else "",
            row.night,
        )
        say(console, _LINE.format(*cells), row.verdict.style)
    if failure is not None:
        console.print()
        _print_first_bad(console, failure)


def _print_first_bad(console: Console, failure: FirstBad) -> None:
    first, good = failure.first, failure.last_good
    say(console, f"first bad  {_place(first)}  {first.verdict}", "red")
    if first.cause is not None:
        say(console, f"           {first.cause.kind}: {first.cause.text}")
    if good is None:
        say(console, "last good  none: it never passed before")
    else:
        say(console, f"last good  {_place(good)}", "green")
    if others := [row for row in failure.before if row.bad]:
        say(console, f"           before, of another cause: {_place(others[-1])}")
    if failure.unsure:
        between = "runs between them that say nothing of the product"
        say(console, f"           {between}: {failure.unsure}")
    if failure.fixed is not None:
        say(console, f"fixed      {_place(failure.fixed)}", "green")
    say(console, f"{failure.bad_runs} bad in a row")
    if not failure.before:
        return
    if not failure.differences:
        say(console, "nothing that the history knows of differs: look whether it is flaky")
    for difference in failure.differences:
        before, after = short(difference.before), short(difference.after)
        say(console, f"  {difference.name}: {before} -> {after}")
    for delta in deltas_of(good, first)[:_MOST_FIGURES]:
        say(console, f"  {delta}")
    if command := next_step(failure):
        say(console, f"next: {command}")


def next_step(failure: FirstBad) -> str | None:
    """Return the command that looks further, when commits of a checkout are known."""
    if failure.commits is None:
        return None
    good, bad = failure.commits
    ends = f"--good {good[:12]} --bad {bad[:12]}"
    return f"hil bisect {failure.first.target} {failure.first.model} {ends}"


def first_bad_summary(failure: FirstBad) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    return {
        "case": failure.first.case,
        "first_bad": asdict(failure.first),
        "last_good": None if failure.last_good is None else asdict(failure.last_good),
        "fixed": None if failure.fixed is None else asdict(failure.fixed),
        "bad_runs": failure.bad_runs,
        "unsure": failure.unsure,
        "differences": [vars(each) for each in failure.differences],
        "figures": {
            d.name: [d.before, d.after] for d in deltas_of(failure.last_good, failure.first)
        },
        "next": next_step(failure),
    }


def when(time: str) -> str:
    """ "2026-11-22 02:00" of a time in ISO 8601."""
    return time[:16].replace("T", " ")


def _place(row: Row) -> str:
    return f"{when(row.time)}  night {row.night}"


def print_flaky(console: Console, cases: Sequence[Flaky]) -> None:
    if not cases:
        say(console, "none: equal runs ended alike", "green")
    for case in cases:
        verdicts = ", ".join(f"{number} {name}" for name, number in case.verdicts.items())
        outputs = f"; {case.outputs} different outputs" if case.outputs > 1 else ""
        say(console, f"{case.case}: {verdicts} of {case.runs} equal runs{outputs}")


def print_night(console: Console, night: Comparison) -> None:
    """Print the cases by state, new failures first; of passing cases only changed figures."""
    if drifted := [case for case in night.cases if case.drift]:
        say(console, f"same model, other program ({len(drifted)})", "yellow")
        for case in drifted:
            say(console, f"  {case.case}: {case.drift}")
    for state, count in night.counts.items():
        if state not in (CaseState.PASSING, CaseState.SKIPPED):
            say(console, f"{state} ({count})", state.style)
            for case in night.of(state):
                _print_one(console, case)
    if night.moved:
        say(console, f"other figures ({len(night.moved)})", "yellow")
        for case, delta in night.moved[:_MOST_MOVED]:
            say(console, f"  {case.case}: {delta}")
    if night.held:
        say(console, f"steps of the night before that hold ({len(night.held)})", "yellow")
        for case, step in night.held[:_MOST_MOVED]:
            changed = [f"{d.name} {short(d.before)} -> {short(d.after)}" for d in step.differences]
            say(console, f"  {case.case}: " + "; ".join([str(step), *changed]))
    rows = [case.row for case in night.cases if case.row is not None]
    notes = by_note(RunSummary(row.case, row.verdict_text, notes=row.notes) for row in rows)
    for note, titles in notes.items():
        say(console, f"note: {note} ({listed(titles, 1)})", "dim")
    for left in night.night.excluded:
        say(console, f"left out: {left.case}: {left.reason}")
    planned = [case for case in night.cases if case.planned]
    passed = sum(case.row is not None and case.row.good for case in planned)
    if planned:
        style = "green" if passed == len(planned) else "red"
        say(console, f"{passed} of {len(planned)} passed", style)
    say(console, f"{night.night.suite}, night {night.night.id}: {night.verdict}", "bold")


def _print_one(console: Console, case: Standing) -> None:
    row = case.row
    if row is None:
        was = case.baseline if case.state is CaseState.LOST else None
        say(console, f"  {case.case}" + ("" if was is None else f": was {' '.join(was.kind)}"))
        return
    whose = f"  [{row.owner}]" if row.owner else ""
    tries = f" ({len(case.tries)} tries)" if len(case.tries) > 1 else ""
    say(console, f"  {case.case}: {row.verdict_text or row.verdict}{tries}{whose}")
    if case.state is CaseState.FIXED or row.cause is None:
        return
    say(console, f"    {row.cause.label}: {row.cause.text}")
    if row.quarantined:
        say(console, f"    in quarantine {row.quarantined}")
    for text in filter(None, (case.flaky, case.culprit)):
        say(console, f"    {text}")
    say(console, f"    {reproducing(row)}")


def reproducing(row: Row) -> str:
    """Return the command that runs the case once more, for a shell."""
    words = ["hil", "run", row.target, row.model]
    if label(row.source):
        words += ["--firmware", row.source]
    return shlex.join(words)


def summary_of(night: Comparison) -> dict[str, Any]:
    """Return the object that ``--json`` prints for a night."""
    return {
        "night": night.night.id,
        "suite": night.night.suite,
        "origin": vars(night.night.origin),
        "before": None if night.before is None else night.before.id,
        "began": night.night.began,
        "verdict": night.verdict,
        "counts": {str(state): count for state, count in night.counts.items()},
        "excluded": [vars(each) for each in night.night.excluded],
        "groups": [
            {"what": group.what, "why": group.why, "cases": [case.case for case in group.cases]}
            for group in night.groups
        ],
        "cases": [_summary(case) for case in night.cases],
    }


def _summary(case: Standing) -> dict[str, Any]:
    row = case.row
    if row is None:
        return {"case": case.case, "state": case.state, "verdict": None}
    return {
        **asdict(row),
        "state": case.state,
        "since": None if case.since is None else case.since.first.night,
        "drift": case.drift or None,
        "flaky": case.flaky or None,
        "culprit": case.culprit or None,
        "tries": [{"verdict": t.verdict, "time": t.time} for t in case.tries],
        "deltas": {d.name: [d.before, d.after] for d in case.deltas},
        "steps": [
            {"figure": s.figure.name, "before": s.before, "after": s.after, "nights": len(s.rows)}
            | {"since": s.first.night, "changed": [vars(each) for each in s.differences]}
            for s in case.steps
        ],
        "command": reproducing(row),
    }
