"""Vela's own figures of a compilation: estimates of its compiler, not measurements.

Vela 5.1.0 writes ``<name>_summary_<system configuration>.csv`` next to the command stream, and with
``--verbose-performance`` ``<name>_per-layer.csv`` (its ``stats_writer.py``). The export reads both
when Vela compiles a delegate. No torch here.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.schema import Data

if TYPE_CHECKING:
    from harness.export.request import NpuOptions

AREAS = ("sram", "dram", "on_chip_flash", "off_chip_flash")
CAVEAT = "Vela's own estimates, not measurements"
_TEMPLATES = ("cycles_{}_access", "{}_memory_used", "{}_total_bytes")
_SUMMARY = (
    *("cycles_total", "cycles_npu", "nn_macs", "core_clock"),
    *(template.format(area) for area in AREAS for template in _TEMPLATES),
)


@dataclass(frozen=True)
class NpuOperator(Data):
    """An operator of Vela's estimate.

    ``operator``: Vela's name; ``tensor``: its result in the TOSA graph; ``layer``: of the model, ""
    for the model's own forward."""

    operator: str
    tensor: str
    layer: str
    cycles: int
    macs: int

    @property
    def title(self) -> str:
        return f"{self.operator} of layer {self.layer}" if self.layer else self.operator


@dataclass(frozen=True)
class Estimate(Data):
    """One delegate. ``summary``: the columns of Vela's table that are numbers, by Vela's names."""

    npu: str
    system_config: str
    memory_mode: str
    summary: dict[str, float]
    operators: tuple[NpuOperator, ...] = ()

    def with_layers(self, layer_of: Callable[[str], str]) -> Estimate:
        """``layer_of``: the layer of a tensor. Vela's own ("#355") take that of the one before."""
        operators: list[NpuOperator] = []
        for each in self.operators:
            added = each.tensor.startswith("#") and operators
            layer = operators[-1].layer if added else layer_of(each.tensor)
            operators.append(replace(each, layer=layer))
        return replace(self, operators=tuple(operators))

    @property
    def cycles(self) -> int:
        return round(self.summary["cycles_total"])

    @property
    def utilisation(self) -> float:
        """Share of the MAC units' cycles that have a multiplication, 0 to 1."""
        possible = self.summary["cycles_total"] * int(self.npu.rpartition("-")[2])
        return self.summary["nn_macs"] / possible if possible else 0.0

    def text(self) -> str:
        of = self.summary
        cycles, clock = of["cycles_total"], of["core_clock"]
        lines = [
            f"{cycles:,.0f} cycles, {1000 * cycles / clock:.3f} ms at {clock / 1e6:.0f} MHz, "
            f"{100 * self.utilisation:.1f} % of the MACs: {CAVEAT}",
            f"  {'NPU':<16}{of['cycles_npu']:>14,.0f} cycles",
        ]
        for area in AREAS:
            used, moved = of[f"{area}_memory_used"], of[f"{area}_total_bytes"]
            if used or moved:
                lines.append(
                    f"  {area.replace('_', ' '):<16}{of[f'cycles_{area}_access']:>14,.0f} cycles"
                    f"{used:>12,.1f} KiB used{moved:>14,.0f} bytes moved"
                )
        return "\n".join(lines)


@dataclass(frozen=True)
class NpuCost(Data):
    """Estimates of all delegates, in order. ``versions``: of the tools that compiled them."""

    versions: dict[str, str]
    estimates: tuple[Estimate, ...]

    @property
    def cycles(self) -> int:
        return sum(each.cycles for each in self.estimates)

    @property
    def operators(self) -> tuple[NpuOperator, ...]:
        return tuple(operator for each in self.estimates for operator in each.operators)

    def to_fields(self) -> dict[str, Any]:
        """As an accepted file keeps it: of the summaries only the cycles."""
        fields = asdict(self)
        for each in fields["estimates"]:
            each["summary"] = {"cycles_total": each["summary"]["cycles_total"]}
        return fields


def read_estimate(folder: Path, name: str, options: NpuOptions) -> Estimate | None:
    """From the tables that Vela wrote, without layers.

    None where they are not those of Vela 5.1.0."""
    try:
        (summary,) = _rows(folder / f"{name}_summary_{options.system_config}.csv")
        operators = tuple(
            NpuOperator(
                row["NNG Operator"],
                row["Name"],
                "",
                round(float(row["Op Cycles"])),
                round(float(row["MAC Count"])),
            )
            for row in _rows(folder / f"{name}_per-layer.csv")
        )
        found = {column: float(summary[column]) for column in _SUMMARY}
    except (OSError, KeyError, ValueError):
        return None
    options_of = (options.compile_target, options.system_config, options.memory_mode)
    return Estimate(*options_of, found, operators)


def _rows(file: Path) -> list[Mapping[str, str]]:
    with file.open(newline="") as table:
        return [*csv.DictReader(table)]
