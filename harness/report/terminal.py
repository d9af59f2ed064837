"""Run records as a table, and a judged log as text, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.plain import plain
from harness.core.words import counted
from harness.judge.console_log import JudgedLog
from harness.report.summary import by_note, summarise
from harness.run.record import RunRecord

# Other oracles that have a column; all are in the record.
_SHOWN = {"quantised eager model": "eager"}


def overall(records: Sequence[RunRecord]) -> RunRecord | None:
    """The record that speaks for all: the first that did not pass, else the first."""
    return next((r for r in records if not r.verdict.passed), records[0] if records else None)


def verdict_text(record: RunRecord) -> Text:
    """The verdict as shown: a product failure also says FAIL, and a tolerance is never silent."""
    verdict = record.verdict
    failed = "FAIL " if verdict.product_failure else ""
    return Text(f"{failed}{record.verdict_text}", style=verdict.style)


def print_records(console: Console, records: Sequence[RunRecord]) -> None:
    """A table per target and firmware, then the cause of everything that is not PASS, and where
    to look."""
    for group in dict.fromkeys(map(_group, records)):
        _print_group(console, group, [r for r in records if _group(r) == group])
    for record in records:
        _print_cause(console, record)
    _print_notes(console, records)
    passed = sum(r.verdict.passed for r in records)
    style = "green" if passed == len(records) else "red"
    tolerant = sum(r.verdict.passed and r.tolerance_lsb > 0 for r in records)
    with_tolerance = f", {tolerant} of them with a tolerance" if tolerant else ""
    console.print(f"{passed} of {len(records)} passed{with_tolerance}", style=style)


def _group(record: RunRecord) -> str:
    whose = record.firmware_label
    return f"{record.case.board} [{whose}]" if whose else record.case.board


def _print_group(console: Console, title: str, records: Sequence[RunRecord]) -> None:
    simulators = {_simulator(r) for r in records if r.simulator is not None}
    sets = max(r.sets for r in records)
    where = ", ".join(sorted(simulators))
    checkouts = {r.exporter_label for r in records if r.program and r.program.exporter}
    exporter = f"; exporter: {', '.join(sorted(checkouts))}" if checkouts else ""
    ran = f" on {where}; {counted(sets, 'input set')}, sizes in bytes" if where else ": nothing ran"
    what = ran + exporter
    console.print(Text.assemble((title, "bold"), what), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    others = list(dict.fromkeys(name for r in records for name in _others(r)))
    for header in ("LSB", *others, ".pte", "text", "planned", "stack", "instr"):
        table.add_column(header, justify="right", no_wrap=True)
    for record in records:
        name = verdict_text(record)
        lsb, *figures = _figures(record)
        agreement = [_others(record).get(other, "-") for other in others]
        table.add_row(record.case.name, name, lsb, *agreement, *figures)
    console.print(table)


def _others(record: RunRecord) -> dict[str, str]:
    """How far, in LSB, the other oracles are from the expected outputs; by column."""
    return {
        _SHOWN[oracle["name"]]: f"{max(w['lsb'] for w in oracle['worst']):.3g}"
        for oracle in (record.program.oracles if record.program is not None else ())
        if oracle["name"] in _SHOWN and oracle["worst"]
    }


def _simulator(record: RunRecord) -> str:
    assert record.simulator is not None
    confined = "" if record.simulator.confined else ", not confined"
    return f"{record.simulator.name} {record.simulator.version}{confined}"


def _figures(record: RunRecord) -> list[str]:
    def figure(name: str) -> str:
        value = record.metrics.get(name)
        return "-" if value is None else str(value)

    return [
        "-" if record.worst_lsb is None else f"{record.worst_lsb:.3g}",
        figure("pte_bytes"),
        figure("elf_text"),
        figure("method_allocator_planned"),
        figure("stack_high_water"),
        figure("ticks_set0"),
    ]


def _print_notes(console: Console, records: Sequence[RunRecord]) -> None:
    """Each note once, with the models it holds for."""
    runs = [replace(summarise(r), title=_within_group(r)) for r in records]
    for note, labels in by_note(runs).items():
        line = Text(f"note: {plain(note)} ({', '.join(labels)})", style="dim")
        console.print(line, soft_wrap=True)


def _within_group(record: RunRecord) -> str:
    """The title without the target, which stands above its table."""
    return record.title.removeprefix(f"{record.case.board}/")


def _print_cause(console: Console, record: RunRecord) -> None:
    cause = record.cause
    if cause is not None:
        where = f" (console line {cause.line})" if cause.line else ""
        console.print()
        console.print(
            Text.assemble(
                (record.title, "bold"),
                ": ",
                verdict_text(record),
                f" {cause.kind}{where}",
            ),
            soft_wrap=True,
        )
        console.print(Text("  " + plain(cause.text)), soft_wrap=True)
        if record.run_dir:
            console.print(Text(f"  evidence: {record.run_dir}"), soft_wrap=True)


def print_profile(console: Console, records: Sequence[RunRecord]) -> None:
    """Ticks per operator of the first input set, largest first (instructions on QEMU)."""
    for record in records:
        if not record.op_ticks:
            continue
        table = Table(title=Text(record.title), box=None, title_justify="left", header_style="bold")
        for header in ("operator", "calls", "ticks", "share"):
            table.add_column(header, justify="left" if header == "operator" else "right")
        total = sum(ticks for _, ticks in record.op_ticks.values())
        ordered = sorted(record.op_ticks.items(), key=lambda item: -item[1][1])
        for operator, (calls, ticks) in ordered:
            table.add_row(operator, str(calls), f"{ticks:,}", f"{ticks / max(total, 1):.1%}")
        console.print(table)


def log_text(log: JudgedLog, verbose: bool) -> str:
    """The verdict, its cause with the line, notes; ``verbose``: also what no log can show."""
    cause = log.judgement.cause
    lines = [f"{log.path}: {log.judgement.verdict}" + (f" {cause.kind}" if cause else "")]
    if cause is not None:
        lines.append(f"  line {cause.line}: {cause.text}" if cause.line else f"  {cause.text}")
        lines += [f"  {name}: {value}" for name, value in (cause.facts or {}).items()]
    lines += [f"  note: {note}" for note in log.judgement.notes]
    lines += [f"  not known: {what}" for what in log.unknowable if verbose]
    return "\n".join(lines)
