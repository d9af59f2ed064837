"""Two runners side by side at a terminal: agreement, the first difference, what each costs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.run.differential import Differential, Pairs
from harness.run.record import RunRecord

# Figures that have a row; all are in the record.
_SHOWN = (
    "elf_text",
    "elf_data",
    "elf_bss",
    "method_allocator_planned",
    "method_allocator_used",
    "ticks_set0",
)


def print_differentials(console: Console, records: Sequence[RunRecord]) -> None:
    """Of every case that ran with both runners."""
    for record in records:
        if record.differential is not None:
            _print_one(console, record.title, record.source, record.differential)


def _print_one(console: Console, title: str, whose: str, found: Differential) -> None:
    outputs = f"{found.agree} of {len(found.tensors)} outputs are the bundled runner's"
    console.print(Text.assemble((title, "bold"), f": {outputs}"), soft_wrap=True)
    for diff in found.tensors:
        if not diff.exact:
            console.print(Text(f"  {diff.describe()}"), soft_wrap=True)
    if found.first is not None:
        console.print(Text(f"  they first differ at {found.first}"), soft_wrap=True)
    if found.by_design:
        console.print(Text(f"  by design: {', '.join(found.by_design)}"), soft_wrap=True)
    rows = {name: pair for name, pair in found.figures.items() if name in _SHOWN}
    if rows:
        _print_pairs(console, "figure", whose, rows)
    if found.operators:
        _print_pairs(console, "operator, instructions", whose, found.operators)


def _print_pairs(console: Console, what: str, whose: str, rows: Pairs) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"  {what}", no_wrap=True)
    for header in ("bundled", whose, "ratio"):
        table.add_column(header, justify="right", no_wrap=True)
    for name, (ours, theirs) in rows.items():
        table.add_row(f"  {name}", _number(ours), _number(theirs), _ratio(ours, theirs))
    console.print(table)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _ratio(ours: int | None, theirs: int | None) -> str:
    return f"{theirs / ours:.3f}" if ours and theirs is not None else "-"
