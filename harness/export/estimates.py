"""What Vela expects a command stream to take: estimates of a compiler, and no measurement.

Vela 5.1.0 writes them when asked: ``<name>_summary_<system configuration>.csv`` for the network
and, with ``--verbose-performance``, ``<name>_per-layer.csv`` (its ``stats_writer.py`` and
``npu_performance.py``). The stream that comes with them must be the delegate's own. No torch here.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count
from pathlib import Path

from harness.errors import ExportError, InfraError, UsageError
from harness.ethosu.blob import read_blob
from harness.export.npu_options import NpuOptions, resolve
from harness.export.program import Program
from harness.target.npu import products

AREAS = ("sram", "dram", "on_chip_flash", "off_chip_flash")
_SECONDS = 600
_LAYER = {  # our name of a column of the table per layer
    "cycles": "Op Cycles", "npu": "NPU", "sram": "SRAM AC", "dram": "DRAM AC",
    "on_chip_flash": "OnFlash AC", "off_chip_flash": "OffFlash AC", "macs": "MAC Count",
}  # fmt: skip


@dataclass(frozen=True)
class Cycles:
    """Clock cycles of the NPU, and those that accesses to each memory take; ``total`` is Vela's,
    which lets them overlap."""

    total: int
    npu: int
    sram: int
    dram: int
    on_chip_flash: int
    off_chip_flash: int


@dataclass(frozen=True)
class Layer:
    """One operator as Vela schedules it. ``name``: of the TOSA tensor it computes."""

    operator: str
    name: str
    cycles: Cycles
    macs: int


@dataclass(frozen=True)
class Estimate:
    """``clock``: Hz. ``memory``: bytes used, and ``moved``: bytes read and written, by area."""

    npu: str
    system_config: str
    memory_mode: str
    clock: float
    cycles: Cycles
    macs: int
    memory: Mapping[str, int]
    moved: Mapping[str, int]
    layers: tuple[Layer, ...] = ()

    @property
    def seconds(self) -> float:
        return self.cycles.total / self.clock

    @property
    def utilisation(self) -> float:
        """Share of the MAC units' cycles that have a multiplication, 0 to 1."""
        possible = self.cycles.total * int(self.npu.rpartition("-")[2])
        return self.macs / possible if possible else 0.0


class AnotherStream(ExportError):
    """Vela makes another stream of the delegate's graph than the one in the program."""

    kind = "another_stream"

    def __init__(self, delegate: int, installed: str, compiled: str) -> None:
        self.delegate, self.installed, self.compiled = delegate, installed, compiled
        super().__init__(
            f"Vela makes another command stream of delegate {delegate} than the program has: its "
            "figures would be of another program",
            hint=f"the program was compiled by {compiled or 'an unknown Vela'}, installed is "
            f"{installed}: export the model again",
        )


def of_program(program: Program) -> tuple[Estimate, ...]:
    """Per delegate, with its layers. Raises ExportError, and AnotherStream for figures that would
    not be of this program."""
    return tuple(_of_delegate(program, index) for index in range(len(program.delegates)))


def compare(program: Program, choices: Sequence[NpuOptions]) -> Iterator[Estimate]:
    """The whole program, all its delegates, as compiled for each choice, which must be of the
    product that its graphs were made for: MAC count and memory mode are Vela's business alone."""
    with ThreadPoolExecutor(cpu_count()) as pool:
        yield from pool.map(lambda options: _whole(program, options), choices)


def choices_of(program: Program) -> tuple[NpuOptions, ...]:
    """Every MAC count and memory mode of the program's NPU, with its system configuration.

    Raises UsageError for a program of which nothing runs on an Ethos-U.
    """
    if not program.delegates:
        raise UsageError(f"nothing of {program.model} runs on an Ethos-U")
    product = program.compile_target.split("-")[1]
    facts = products().products[product]
    return tuple(
        resolve(
            f"ethos-{product}-{macs}",
            program.system_config,
            mode,
            direct_drive=program.direct_drive,
        )
        for macs in facts.macs
        for mode in products().modes_of(facts)
    )


def _of_delegate(program: Program, index: int) -> Estimate:
    delegate = program.delegates[index]
    found, commands = _estimate(program.directory / delegate.tosa, _options(program))
    if commands != read_blob((program.directory / delegate.blob).read_bytes()).commands:
        from harness.export.request import exporter_versions

        installed = exporter_versions(program.compile_target).get("ethos-u-vela", "")
        raise AnotherStream(index, installed, program.versions.get("ethos-u-vela", ""))
    return found


def _options(program: Program) -> NpuOptions:
    return resolve(
        program.compile_target,
        program.system_config,
        program.memory_mode,
        direct_drive=program.direct_drive,
    )


def _whole(program: Program, options: NpuOptions) -> Estimate:
    parts = [_estimate(program.directory / d.tosa, options)[0] for d in program.delegates]
    cycles = Cycles(*(
        sum(getattr(p.cycles, name) for p in parts) for name in Cycles.__dataclass_fields__
    ))  # fmt: skip
    return replace(
        parts[0],
        cycles=cycles,
        macs=sum(p.macs for p in parts),
        memory={area: max(p.memory[area] for p in parts) for area in AREAS},
        moved={area: sum(p.moved[area] for p in parts) for area in AREAS},
        layers=(),
    )


def _estimate(graph: Path, options: NpuOptions) -> tuple[Estimate, bytes]:
    """And the command stream that it is of."""
    with tempfile.TemporaryDirectory() as folder:
        _vela(graph, options, Path(folder))
        try:
            summary = _table(Path(folder) / f"{graph.stem}_summary_{options.system_config}.csv")[0]
            layers = _table(Path(folder) / f"{graph.stem}_per-layer.csv")
            found = _read(summary, layers, options)
        except (OSError, IndexError, KeyError, ValueError) as error:
            raise ExportError(
                f"Vela's figures are not where those of Vela 5.1.0 are: {error!r}",
                hint="install the ethos-u-vela that the project names",
            ) from error
        return found, _commands(Path(folder) / f"{graph.stem}_vela.npz")


def flags(options: NpuOptions) -> list[str]:
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


def _vela(graph: Path, options: NpuOptions, folder: Path) -> None:
    argv = [
        sys.executable, "-P" if sys.version_info >= (3, 11) else "-E", "-m", "ethosu.vela",
        *flags(options), "--verbose-performance", f"--output-dir={folder}", str(graph),
    ]  # fmt: skip
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"Vela has not ended after {_SECONDS} s") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ExportError(
            f"Vela does not compile the graph for {options.compile_target}, "
            f"{options.memory_mode}: {''.join(last)}"
        )


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _read(
    summary: Mapping[str, str], layers: Sequence[Mapping[str, str]], options: NpuOptions
) -> Estimate:
    return Estimate(
        npu=options.compile_target,
        system_config=options.system_config,
        memory_mode=options.memory_mode,
        clock=float(summary["core_clock"]),
        cycles=Cycles(
            _int(summary["cycles_total"]),
            _int(summary["cycles_npu"]),
            *(_int(summary[f"cycles_{area}_access"]) for area in AREAS),
        ),
        macs=_int(summary["nn_macs"]),
        memory={area: round(float(summary[f"{area}_memory_used"]) * 1024) for area in AREAS},
        moved={area: _int(summary[f"{area}_total_bytes"]) for area in AREAS},
        layers=tuple(_layer(row) for row in layers),
    )


def _layer(row: Mapping[str, str]) -> Layer:
    figures = {name: _int(row[column]) for name, column in _LAYER.items()}
    macs, total = figures.pop("macs"), figures.pop("cycles")
    return Layer(row["Original Operator"], row["Name"], Cycles(total, **figures), macs)


def _int(text: str) -> int:
    return round(float(text))


def _commands(path: Path) -> bytes:
    import numpy as np

    with np.load(path, allow_pickle=False) as data:
        return bytes(data["cmd_data"].tobytes())
