"""Vela's estimates for people: the operators of one stream, and a model on all of a product's NPUs.

They are always called estimates: nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.errors.plain import plain
from harness.export.estimates import AREAS, Estimate
from harness.system.files import disk_errors, write_whole

CAVEAT = "Vela's own estimates, not measurements"
_TEMPLATE = Path(__file__).with_name("estimates.html")


def fields(estimate: Estimate) -> dict[str, Any]:
    """For ``--json``: what the estimate has, and what follows from it."""
    return {
        **asdict(estimate),
        "milliseconds": round(1000 * estimate.seconds, 6),
        "utilisation": round(estimate.utilisation, 6),
    }


def print_layers(console: Console, delegate: int, estimate: Estimate) -> None:
    table = _table("cycles", "", "NPU", "SRAM", "others", "MACs")
    for text in ("operator", "computes"):
        table.add_column(text, overflow="fold")
    for layer in estimate.layers:
        cycles = layer.cycles
        table.add_row(
            _number(cycles.total),
            _percent(cycles.total, estimate.cycles.total),
            _number(cycles.npu),
            _number(cycles.sram),
            _number(cycles.dram + cycles.on_chip_flash + cycles.off_chip_flash),
            _number(layer.macs),
            escape(plain(layer.operator)),
            escape(plain(layer.name)),
        )
    console.print(table)
    console.print(
        f"delegate {delegate}: {_number(estimate.cycles.total)} cycles, {_time(estimate)}, "
        f"{100 * estimate.utilisation:.1f} % of the MACs: {CAVEAT}",
        highlight=False,
        soft_wrap=True,
    )


def print_comparison(console: Console, model: str, found: Sequence[Estimate]) -> None:
    """Of one product; bytes in KiB. The fastest is marked."""
    table = _table("MACs", "memory mode", "cycles", "ms", "used", "SRAM", "others", "moved")
    table.columns[1].justify = "left"
    least = min(one.cycles.total for one in found)
    for one in found:
        table.add_row(
            _macs(one),
            one.memory_mode,
            _number(one.cycles.total) + (" *" if one.cycles.total == least else "  "),
            f"{1000 * one.seconds:.3f}",
            f"{100 * one.utilisation:.1f} %",
            _kib(one.memory["sram"]),
            _kib(sum(one.memory[area] for area in AREAS[1:])),
            _kib(sum(one.moved.values())),
        )
    console.print(table)
    console.print(
        f"{plain(model)} with {found[0].system_config}: {CAVEAT}\n"
        "used: share of the MACs; SRAM, other memories, bytes moved: KiB; *: fewest cycles",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def write_page(path: Path, model: str, found: Sequence[Estimate]) -> None:
    """One self-contained page: the comparison as a plot and as a table. Raises InfraError."""
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    most = max(one.cycles.total for one in found) or 1
    page = template.render(
        model=plain(model),
        product=found[0].npu.rpartition("-")[0].title(),
        found=found,
        most=most,
        caveat=CAVEAT,
        areas=[area for area in AREAS if any(one.memory[area] for one in found)],
        row=26,  # pixels
        macs=_macs,
    )
    with disk_errors(f"writing {path}"):
        write_whole(path, page)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _macs(estimate: Estimate) -> str:
    return estimate.npu.rpartition("-")[2]


def _number(value: int) -> str:
    return f"{value:,}"


def _kib(value: int) -> str:
    kib = value / 1024
    return f"{kib:,.0f}" if kib >= 100 else f"{kib:.1f}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _time(estimate: Estimate) -> str:
    return f"{1000 * estimate.seconds:.3f} ms at {estimate.clock / 1e6:.0f} MHz"
