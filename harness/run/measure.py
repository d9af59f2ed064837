"""Subjects and files to figures and anatomies; nothing is run.

What a subject needs is exported and built where it is not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.config.case import RUNNER, Case
from harness.config.figures import MeasuredIn
from harness.config.loading import load_target, loadable_name
from harness.core.errors import HarnessError
from harness.export.program import Program
from harness.firmware.firmware import Firmware, read_firmware
from harness.firmware.sources.bundled import build
from harness.judge.reference import ANY_TOOLCHAIN
from harness.run.subjects import export_cases
from harness.sim.simulator import pick
from harness.size.anatomy import Anatomy
from harness.size.budgeted_figures import figures_of_firmware, figures_of_program
from harness.size.measure import measure_file
from harness.system.progress import Progress, silent


@dataclass(frozen=True)
class Measured:
    """A case's program, or a target's runner, ready to be compared with what was accepted.
    ``pte_sha256``: of a program."""

    case: Case
    stage: MeasuredIn  # "program" or "firmware"
    toolchain: str
    anatomy: Anatomy
    figures: dict[str, int]
    pte_sha256: str = ""


def measure_cases(
    subjects: Sequence[Case], progress: Progress = silent
) -> list[Measured | HarnessError]:
    """One result per subject, in order; the error says why one could not be measured.

    Raises UsageError for a target or model that does not exist.
    """
    targets = {name: load_target(name) for name in {c.target for c in subjects}}
    programs = [c for c in subjects if c.model != RUNNER]
    exported = dict(zip(programs, export_cases(programs, targets, progress), strict=True))

    def measured(case: Case) -> Measured | HarnessError:
        target = targets[case.target]
        named = replace(case, target=loadable_name(target, case.target))
        try:
            if case.model == RUNNER:
                return measure_firmware(named, build(pick(target).target, progress=progress))
            program = exported[case]
            if isinstance(program, HarnessError):
                return program
            return measure_program(named, program)
        except HarnessError as error:
            return error

    return [measured(case) for case in subjects]


def measure_program(case: Case, program: Program) -> Measured:
    anatomy = measure_file(program.pte_path)
    figures = figures_of_program(anatomy)
    return Measured(case, "program", ANY_TOOLCHAIN, anatomy, figures, program.pte_sha256)


def measure_firmware(case: Case, firmware: Firmware) -> Measured:
    regions = firmware.regions
    anatomy = measure_file(firmware.elf, regions, firmware.map)
    figures = figures_of_firmware(anatomy.parts, [r.name for r in regions])
    return Measured(case, "firmware", firmware.toolchain_id, anatomy, figures)


def measure(file: Path, target: str | None = None, linker_map: Path | None = None) -> Anatomy:
    """The anatomy of a file. An ELF of the harness has its memory regions and map beside it.

    Raises UsageError for an unknown target.
    """
    if linker_map is None:
        beside = file.with_name(f"{file.name}.map")
        linker_map = beside if beside.is_file() else None
    if target is None:
        built = read_firmware(file.parent)
        return measure_file(file, () if built is None else built.regions, linker_map)
    return measure_file(file, load_target(target).memory, linker_map)
