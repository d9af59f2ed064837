"""What a run left in its directory, read as evidence. Nothing is executed or written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from harness.config.loading import Target
from harness.export.program import Program
from harness.firmware.firmware import Firmware
from harness.judge.compare import TensorDiff, compare
from harness.judge.evidence import ByDesign, Ending, Evidence, Outputs
from harness.judge.symbols import where_spinning, with_symbols
from harness.log import Observation
from harness.log.parser import parse_processes
from harness.run.record import RunRecord
from harness.sim.run_files import CONSOLE, WORK, output_base, output_name, read_output
from harness.sim.transcript import Transcript
from harness.size.budgeted_figures import figures_of_firmware
from harness.size.elf_anatomy import Memory, section_parts
from harness.system.files import read_regular


def gather(program: Program, record: RunRecord, observation: Observation | None = None) -> Evidence:
    """The evidence of a run of ``program``. Of its record only what is not read from its directory
    is used. ``observation``: what was parsed while the run went on, if it was; None parses the
    kept console."""
    assert record.run_dir is not None
    assert record.ending is not None
    run_dir = Path(record.run_dir)
    if observation is None:
        observation = parse_processes(read_regular(run_dir / CONSOLE), record.starts)
    if record.firmware is not None:
        observation = with_symbols(observation, Path(record.firmware.elf))
    printed = {name: metric.value for name, metric in observation.metrics.items()}
    return Evidence(
        observation,
        record.ending,
        read_outputs(program, run_dir / WORK),
        {**record.static_metrics, **printed},
        record.npu,
        () if record.simulator is None else record.simulator.differences,
        record.mismatch_at,
        record.blame,
        _size_of(run_dir / CONSOLE),
    )


def _size_of(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def read_outputs(program: Program, work: Path) -> Outputs:
    """Compare every output file of a run with what the Program expects."""
    diffs: list[TensorDiff] = []
    by_design: list[TensorDiff] = []
    missing: list[str] = []
    misshapen: list[str] = []
    digests: list[tuple[str, ...]] = []
    for k in range(len(program.sets)):
        raws: list[bytes] = []
        for n, spec in enumerate(program.outputs):
            file = work / output_name(output_base(k), n)
            found = read_output(file, spec.nbytes)
            if found is None:
                missing.append(file.name)
                continue
            raw, size = found
            raws.append(raw)
            if size == spec.nbytes:
                nearest, designed = _compared(program, k, n, raw)
                diffs.append(nearest)
                by_design += [designed] if designed is not None else []
            else:
                misshapen.append(f"{file.name} has {size} bytes, expected {spec.nbytes}")
        digests.append(tuple(hashlib.sha256(raw).hexdigest() for raw in raws))
    named = ByDesign(tuple(d.name for d in program.by_design), tuple(by_design))
    return Outputs(
        tuple(diffs),
        tuple(missing),
        tuple(misshapen),
        tuple(digests),
        named if by_design else None,
    )


def _compared(program: Program, k: int, n: int, raw: bytes) -> tuple[TensorDiff, TensorDiff | None]:
    """Output ``n`` of set ``k`` against the definition that it is nearer to; and, when it is
    exactly what the named differences make, against the one without them."""
    spec, names = program.outputs[n], program.sets[k]
    expected = compare(spec, k, raw, (program.directory / names.expected[n]).read_bytes())
    if expected.exact or not names.by_design:
        return expected, None
    designed = compare(spec, k, raw, (program.directory / names.by_design[n]).read_bytes())
    if designed.exact:
        return designed, expected
    return min(designed, expected, key=lambda diff: diff.worst_abs), None


def ending(transcript: Transcript, elf: Path | None = None) -> Ending:
    cpu = transcript.cpu
    return Ending(
        transcript.stop,
        transcript.exit_status,
        transcript.signal,
        transcript.seconds,
        native=transcript.native,
        where=None if cpu is None else where_spinning(cpu.registers, cpu.stack, elf),
        console_complete=transcript.console_complete,
        console_bytes=transcript.console_bytes,
        excess=transcript.excess,
    )


def static_metrics(target: Target, firmware: Firmware, pte: Path) -> dict[str, int]:
    """The figures that need no run: of the program's file and of the firmware's."""
    return {
        "pte_bytes": pte.stat().st_size,
        **elf_metrics(firmware.regions, firmware.elf, pools=firmware.source.sizes_are_accepted),
        **stored_metrics(firmware),
    }


def stored_metrics(firmware: Firmware) -> dict[str, int]:
    """Of a runner that a file system stores, without its symbols."""
    size = firmware.stored_bytes if firmware.source.sizes_are_accepted else None
    return {} if size is None else {"elf_stripped": size}


def elf_metrics(regions: Sequence[Memory], elf: Path, *, pools: bool) -> dict[str, int]:
    """The ELF's bytes by region of memory; nothing where there is no memory map. ``pools``: it
    has sections that hold nothing else, as our runner has."""
    if not regions:
        return {}
    found = figures_of_firmware(section_parts(elf, regions), [r.name for r in regions])
    return {n: v for n, v in found.items() if pools or not n.endswith(("_pools", "_no_pools"))}
