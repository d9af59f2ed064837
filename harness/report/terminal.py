"""Runs at a terminal: records, a judged log, a bisection, a replay, two runners side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from harness.config import strict_yaml
from harness.core.errors import UsageError
from harness.core.safe_text import counted, grouped, plain
from harness.core.verdict import Verdict
from harness.judge.budget_check import is_low
from harness.judge.console_log import JudgedLog
from harness.judge.cost import NPU_FIGURE
from harness.report.safe_console import columns, fitted, say
from harness.report.summary import by_note, summarise
from harness.report.templates import filled
from harness.run.bisect import Bisection, BisectTrial, Mark
from harness.run.record import Differential, Pairs, RunRecord
from harness.system.files import disk_errors, write_whole

if TYPE_CHECKING:
    from harness.run.bundle import Replay  # zstandard, which few verbs need


class Advice(NamedTuple):
    meaning: str
    do: str


_HERE = Path(__file__).parent


@cache
def causes() -> dict[str, Advice]:
    """Return the advice of every cause that has its own, by its kind."""
    table = strict_yaml.read(_HERE / "causes.yaml").data
    return {kind: Advice(**row) for kind, row in table.items()}


def advice(verdict: Verdict, kind: str | None) -> Advice:
    """Return the advice for a cause, or for the verdict if the cause has none."""
    return causes().get(kind or "", Advice(verdict.meaning, verdict.do))


# Other oracles that have a column; all are in the record.
_ORACLE_COLUMNS = {"quantised eager model": "eager"}
_FIGURE_COLUMNS = {
    ".pte": "pte_bytes",
    "text": "elf_text",
    "planned": "method_allocator_planned",
    "stack": "stack_high_water",
    "instr": "ticks_set0",
}


def representative(records: Sequence[RunRecord]) -> RunRecord | None:
    """Return the record that speaks for all: the first that did not pass, else the first."""
    return next((r for r in records if not r.verdict.passed), records[0] if records else None)


def styled_verdict(record: RunRecord) -> Text:
    """Return the verdict as shown: a product failure says FAIL, and a tolerance shows."""
    verdict = record.verdict
    failed = "FAIL " if verdict.product_failure else ""
    return Text(f"{failed}{record.verdict_text}", style=verdict.style)


def print_records(console: Console, records: Sequence[RunRecord]) -> None:
    """Print a table per target and firmware, then the causes, and where to look."""
    for title in dict.fromkeys(map(_table_title, records)):
        _print_table(console, title, [r for r in records if _table_title(r) == title])
    _print_causes(console, records)
    _print_notes(console, records)
    passed = sum(r.verdict.passed for r in records)
    style = "green" if passed == len(records) else "red"
    tolerant = sum(r.verdict.passed and r.tolerance_lsb > 0 for r in records)
    with_tolerance = f", {tolerant} of them with a tolerance" if tolerant else ""
    console.print(f"{passed} of {len(records)} passed{with_tolerance}", style=style)


def _table_title(record: RunRecord) -> str:
    whose = record.firmware_label
    return f"{record.case.board} [{whose}]" if whose else record.case.board


def _print_table(console: Console, title: str, records: Sequence[RunRecord]) -> None:
    simulators = {_simulator(r) for r in records if r.simulator is not None}
    sets = max(r.sets for r in records)
    where = ", ".join(sorted(simulators))
    checkouts = {r.exporter_label for r in records if r.program and r.program.exporter}
    exporter = f"; exporter: {', '.join(sorted(checkouts))}" if checkouts else ""
    estimated = any(NPU_FIGURE in r.metrics for r in records)
    units = "sizes in bytes" + ", npu kcyc estimated by Vela" * estimated
    ran = f" on {where}; {counted(sets, 'input set')}, {units}" if where else ": nothing ran"
    say(console, Text.assemble((title, "bold"), ran + exporter))
    others = list(dict.fromkeys(name for r in records for name in _oracle_distances(r)))
    decibels = ["dB"] if any(r.accuracy for r in records) else []
    npu = ["npu kcyc"] if estimated else []
    heads = ("LSB", *others, *decibels, *_FIGURE_COLUMNS, *npu)
    rows: list[tuple[str | Text, ...]] = []
    for record in records:
        lsb = "-" if record.worst_lsb is None else f"{record.worst_lsb:.3g}"
        agreement = [_oracle_distances(record).get(other, "-") for other in others]
        accuracy = [_decibels(record) for _ in decibels]
        figures = [str(record.metrics.get(name, "-")) for name in _FIGURE_COLUMNS.values()]
        cycles = record.metrics.get(NPU_FIGURE)
        figures += ["-" if cycles is None else f"{cycles / 1000:,.1f}" for _ in npu]
        name, verdict = record.case.shown_name, styled_verdict(record)
        rows.append((name, verdict, lsb, *agreement, *accuracy, *figures))
    console.print(fitted(console, ("model", "verdict", *(f">{head}" for head in heads)), rows))


def _decibels(record: RunRecord) -> Text:
    """SQNR of the output that is furthest from the float model."""
    if not record.accuracy:
        return Text("-")
    worst = min(each.sqnr_db for each in record.accuracy)
    return Text(f"{worst:.3g}", "bold yellow" if any(map(is_low, record.accuracy)) else "")


def _oracle_distances(record: RunRecord) -> dict[str, str]:
    """How far, in LSB, the other oracles are from the expected outputs; by column."""
    return {
        _ORACLE_COLUMNS[oracle["name"]]: f"{max(w['lsb'] for w in oracle['worst']):.3g}"
        for oracle in (record.program.oracles if record.program is not None else ())
        if oracle["name"] in _ORACLE_COLUMNS and oracle["worst"]
    }


def _simulator(record: RunRecord) -> str:
    simulator = record.simulator
    assert simulator is not None
    confined = "" if simulator.unconfined_reason is None else ", confined in part"
    confined = confined if simulator.confined else ", not confined"
    return f"{simulator.name} {simulator.version}{confined}"


def _print_notes(console: Console, records: Sequence[RunRecord]) -> None:
    """Print each note once, with the models it holds for, unless it holds for all."""
    titles = [record.title.removeprefix(f"{record.case.board}/") for record in records]
    runs = [replace(summarise(r), title=t) for r, t in zip(records, titles, strict=True)]
    for note, labels in by_note(runs).items():
        which = f" ({', '.join(labels)})" if len(labels) < len(records) else ""
        say(console, f"note: {note}{which}", "dim")


def _print_causes(console: Console, records: Sequence[RunRecord]) -> None:
    """Each cause once: what stops a build stops the run of every model."""
    found: dict[object, list[RunRecord]] = {}
    for record in records:
        if record.cause is not None:
            what = (record.verdict, record.cause.label, record.cause.text, record.run_dir)
            found.setdefault(what, []).append(record)
    for first, *others in found.values():
        assert first.cause is not None
        details = fault_details(first.cause.facts or {})
        names = ", ".join([first.title, *(other.title for other in others)])
        title = Text.assemble((names, "bold"), ": ", styled_verdict(first), f" {first.cause.label}")
        console.print()
        say(console, title)
        say(console, f"  {first.cause.text}")
        if details is not None and details not in first.cause.text:
            say(console, f"  {details}")
        if first.run_dir:
            say(console, f"  evidence: {first.run_dir}")


def fault_details(facts: Mapping[str, Any]) -> str | None:
    """Return facts about a fault that its line lacks; None if nothing is known.

    They are which of its kind it was, where the CPU was; for a reset loop, the line before it and
    what in the firmware can reset."""
    parts = [facts.get("which"), fault_place(facts)]
    if above := facts.get("above"):
        parts.append(f"the last line before the banner: {above}")
    if resets := facts.get("resets"):
        parts.append(f"of what can reset the board the firmware has {resets}")
    return ", ".join(filter(None, parts)) or None


def fault_place(facts: Mapping[str, Any]) -> str | None:
    """Return function and source line in which a CPU was at its fault; None if no ELF says it.

    It is the caller's, where it jumped to nowhere, or into the handler of a failed assertion."""
    places = (("lr", "in"),) if "assertion" in facts else (("pc", "in"), ("lr", "called from"))
    for name, said in places:
        symbol, source = facts.get(f"{name}_symbol"), facts.get(f"{name}_source")
        if symbol is not None:
            return f"{said} {symbol} ({source})" if source else f"{said} {symbol}"
    return None


_MOST_ROWS = 15


def print_profile(console: Console, records: Sequence[RunRecord]) -> None:
    """Print the layers that matter most, each with its share of its own column.

    The columns are instructions of the CPU in the first input set, and Vela's estimate of the NPU.
    """
    for record in records:
        rows = record.profile
        if not rows:
            continue
        table = columns("layer", "operator", ">instructions", ">share", ">npu cycles", ">share")
        table.title, table.title_justify = Text(record.title), "left"
        cpu, npu = sum(row.instructions for row in rows), sum(row.cycles for row in rows)
        for row in rows[:_MOST_ROWS]:
            figures = (*_shared(row.instructions, cpu), *_shared(row.cycles, npu))
            times = f" x{row.calls}" if row.calls > 1 else ""
            name = row.operator.rpartition("::")[2].removesuffix(".out")
            table.add_row(row.layer, name + times, *figures)
        console.print(table)
        if rest := rows[_MOST_ROWS:]:
            say(console, f"{len(rest)} more rows: --json has all", "dim")
        if npu:
            say(console, "npu cycles are Vela's estimate, and no part of the instructions", "dim")


def _shared(value: int, total: int) -> tuple[str, str]:
    return (f"{value:,}", f"{value / total:.1%}") if value else ("", "")


def write_profile(file: Path, record: RunRecord) -> None:
    """Write the page of a profile. Raises UsageError where nothing was counted, DiskError."""
    if not record.profile:
        raise UsageError(f"nobody counted what {record.title} costs", hint="run it with --profile")
    values = {
        "title": record.title,
        "rows": record.profile,
        "style": (_HERE / "page" / "night.css").read_text("utf-8"),
    }
    with disk_errors("writing the profile"):
        write_whole(file, filled(_HERE / "profile.html", values, {"number": grouped}))


def judged_log_text(log: JudgedLog, verbose: bool) -> str:
    """Return verdict, cause, evidence and notes; ``verbose``: also what no log can show."""
    cause, verdict = log.judgement.cause, log.judgement.verdict
    if cause is None:
        lines = [f"{log.path}: {verdict}"]
    else:
        facts = cause.facts or {}
        line = f"{log.path}:{cause.line}" if cause.line else str(log.path)
        place = fault_details(facts) if fault_place(facts) else facts.get("place", line)
        lines = [
            f"{verdict} {cause.kind}: {advice(verdict, cause.kind).do} ({place})",
            f"  cause: line {cause.line}: {cause.text}" if cause.line else f"  cause: {cause.text}",
            *(f"  evidence: {name}: {value}" for name, value in facts.items()),
        ]
    lines += [f"  note: {note}" for note in log.judgement.notes]
    lines += [f"  not known: {aspect}" for aspect in log.unknowable if verbose]
    return "\n".join(lines)


_MARK_STYLES = {Mark.GOOD: "green", Mark.BAD: "bold red", Mark.SKIP: "yellow"}
_MOST_CANDIDATES = 20


def print_bisection(console: Console, bisection: Bisection) -> None:
    """Every revision that was run, then the one that was searched."""
    searched = f"the first {Mark.GOOD if bisection.fixed else Mark.BAD} commit"
    for trial in bisection.trials:
        mark = (f"{trial.mark:5}", _MARK_STYLES[trial.mark])
        say(console, Text.assemble(mark, f" {trial.commit}  ", _trial_verdict(trial)))
        if trial.mark is Mark.SKIP and trial.record.cause is not None:
            say(console, plain(f"      {trial.record.cause.text}"))
    counts = Counter(trial.mark for trial in bisection.trials)
    marks = ", ".join(f"{counts[mark]} {mark}" for mark in Mark if counts[mark])
    say(console, f"{counted(len(bisection.trials), 'revision')} run: {marks}")
    console.print()
    if (first := bisection.first) is not None:
        say(console, Text.assemble((first.commit.sha, "bold"), f" is {searched}"))
        say(console, f"  {first.commit.author}")
        say(console, f"  {first.commit.subject}")
        say(console, Text.assemble("  ", _trial_verdict(first)))
        if first.record.cause is not None:
            say(console, f"  {first.record.cause.text}")
        if first.record.run_dir:
            say(console, f"  evidence: {first.record.run_dir}")
        return
    hidden = f"skipped revisions hide {searched}; it is one of these"
    number = len(bisection.candidates)
    say(console, Text.assemble(("not decided: ", "yellow"), f"{hidden} {number}:"))
    for commit in bisection.candidates[:_MOST_CANDIDATES]:
        say(console, f"  {commit}")
    if (more := len(bisection.candidates) - _MOST_CANDIDATES) > 0:
        say(console, f"  ... and {more} more (--json lists all)")


def _trial_verdict(trial: BisectTrial) -> Text:
    kind = "" if trial.record.cause is None else f" {trial.record.cause.kind}"
    return Text.assemble(styled_verdict(trial.record), kind)


_MOST_DIFFERENCES = 12


def print_replay(console: Console, replay: Replay) -> None:
    print_records(console, [replay.here])
    there, here = replay.versions
    line = Text.assemble("in the bundle: ", styled_verdict(replay.there), f" on version {there}")
    say(console, line)
    if there != here:
        say(console, f"here: version {here}", "yellow")
    if replay.same:
        say(console, "the same: verdict, cause, outputs and figures", "green")
    for name, (before, after) in list(replay.differing.items())[:_MOST_DIFFERENCES]:
        say(console, f"another {name}: it was {before}, and is {after}", "red")


# Figures that have a row; all are in the record.
_COMPARED_FIGURES = (
    "elf_text",
    "method_allocator_planned",
    "method_allocator_used",
    "ticks_set0",
)


def print_differentials(console: Console, records: Sequence[RunRecord]) -> None:
    """Print the comparison of every case that ran with two runners, or on two simulators."""
    for record in records:
        if record.differential is not None:
            _print_differential(console, record.title, record.differential)


def _print_differential(console: Console, title: str, differential: Differential) -> None:
    outputs = f"{differential.agree} of {len(differential.tensors)} outputs"
    first, _ = between = differential.between
    whose = "the bundled runner's" if first == "bundled" else f"as on {first}"
    heading = Text.assemble((title, "bold"), f": {outputs} are {whose}")
    say(console, heading)
    for diff in differential.tensors:
        if not diff.exact:
            say(console, f"  {diff.describe()}")
    if differential.first is not None:
        say(console, f"  they first differ at {differential.first}")
    if differential.by_design:
        say(console, f"  by design: {', '.join(differential.by_design)}")
    rows = {name: pair for name, pair in differential.figures.items() if name in _COMPARED_FIGURES}
    if rows:
        _print_pairs(console, "figure", between, rows)
    if differential.operators:
        _print_pairs(console, "operator, instructions", between, differential.operators)


def _print_pairs(console: Console, heading: str, between: tuple[str, str], rows: Pairs) -> None:
    table = columns(f"  {heading}", *(f">{name}" for name in between), ">ratio")
    for name, (ours, theirs) in rows.items():
        ratio = f"{theirs / ours:.3f}" if ours and theirs is not None else "-"
        table.add_row(f"  {name}", grouped(ours, "-"), grouped(theirs, "-"), ratio)
    console.print(table)
