"""Vela's own summary of a program: estimates of its compiler, not measurements.

Vela 5.1.0 writes ``<name>_summary_<system configuration>.csv`` (its ``stats_writer.py``) beside
the command stream. The stream must be the one that the program has. No torch here.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.core.errors import ExportError, InfraError
from harness.export.program import Program
from harness.export.request import NpuOptions
from harness.npu.blob import read_blob
from harness.system.call import CallFailed, call

AREAS = ("sram", "dram", "on_chip_flash", "off_chip_flash")
CAVEAT = "Vela's own estimates, not measurements"
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Estimate:
    """One delegate. ``summary``: the columns of Vela's table that are numbers, by Vela's names."""

    npu: str
    system_config: str
    memory_mode: str
    summary: Mapping[str, float]

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


def estimates_of(program: Program) -> tuple[Estimate, ...]:
    """One for each delegate. Raises ExportError, also when the installed Vela compiles another
    command stream than the program has, and InfraError when Vela does not end."""
    options = program.npu
    found = []
    for index, delegate in enumerate(program.delegates):
        estimate, commands = _compile(program.directory / delegate.tosa, options)
        if commands != read_blob((program.directory / delegate.blob).read_bytes()).commands:
            compiler = program.versions.get("ethos-u-vela", "an unknown Vela")
            raise ExportError(
                f"Vela compiles another command stream for delegate {index} than the program has: "
                "its figures would be those of another program",
                hint=f"the program was compiled by {compiler}: export the model again",
            )
        found.append(estimate)
    return tuple(found)


def vela_flags(options: NpuOptions) -> list[str]:
    """As ExecuTorch's EthosUCompileSpec has them, in its order."""
    direct = ["--separate-io-regions", "--cop-format=COP2"] if options.direct_drive else []
    return [
        *direct,
        f"--accelerator-config={options.compile_target}",
        "--config=Arm/vela.ini",
        "--output-format=raw",
        f"--system-config={options.system_config}",
        f"--memory-mode={options.memory_mode}",
    ]


def _compile(graph: Path, options: NpuOptions) -> tuple[Estimate, bytes]:
    """The summary, and the command stream that it belongs to."""
    with tempfile.TemporaryDirectory() as folder:
        _run_vela(graph, options, folder)
        try:
            table = Path(folder) / f"{graph.stem}_summary_{options.system_config}.csv"
            with table.open(newline="") as file:
                estimate = _read(next(csv.DictReader(file)), options)
        except (OSError, StopIteration, KeyError, ValueError) as error:
            raise ExportError(
                f"Vela's figures are not where those of Vela 5.1.0 are: {error!r}",
                hint="install the ethos-u-vela that the project names",
            ) from error
        with np.load(Path(folder) / f"{graph.stem}_vela.npz", allow_pickle=False) as data:
            return estimate, data["cmd_data"].tobytes()


def _run_vela(graph: Path, options: NpuOptions, folder: str) -> None:
    # A file of the user's folder must not shadow a module of Vela's: -P is new in 3.11.
    isolated = "-P" if sys.version_info >= (3, 11) else "-E"
    argv = [sys.executable, isolated, "-m", "ethosu.vela", *vela_flags(options)]
    argv += [f"--output-dir={folder}", str(graph)]
    try:
        call(argv, _TIMEOUT_S)
    except CallFailed as error:
        if error.output is None:
            raise InfraError(f"Vela: {error}") from error
        raise ExportError(
            f"Vela does not compile the graph for {options.compile_target}, "
            f"{options.memory_mode}: {error}"
        ) from error


def _read(row: Mapping[str, str], options: NpuOptions) -> Estimate:
    templates = ("cycles_{}_access", "{}_memory_used", "{}_total_bytes")
    names = ["cycles_total", "cycles_npu", "nn_macs", "core_clock"]
    names += [template.format(area) for area in AREAS for template in templates]
    summary = {name: float(row[name]) for name in names}
    return Estimate(options.compile_target, options.system_config, options.memory_mode, summary)
