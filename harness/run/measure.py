"""Subjects to figures and anatomies: export and build what is not cached; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.build.firmware import Firmware, build
from harness.case.case import RUNNER, Case
from harness.errors import HarnessError
from harness.export.program import Program
from harness.footprint.anatomy import Anatomy
from harness.footprint.figures import firmware_figures, program_figures
from harness.footprint.measure import measure_file
from harness.judge.reference import ANY_TOOLCHAIN
from harness.run.pipeline import export_cases
from harness.simulate.pick import pick
from harness.system.progress import Progress, silent
from harness.target.figures import Stage
from harness.target.loading import load_target


@dataclass(frozen=True)
class Measured:
    """A case's program, or a target's runner, ready to be held against what was accepted."""

    case: Case
    stage: Stage  # "program" or "firmware"
    toolchain: str
    anatomy: Anatomy
    figures: dict[str, int]


def measure_cases(
    subjects: Sequence[Case], progress: Progress = silent
) -> list[Measured | HarnessError]:
    """One result per subject, in order; the error says why one could not be measured.

    Raises UsageError for a target or model that does not exist.
    """
    targets = {name: load_target(name) for name in {c.target for c in subjects}}
    programs = [c for c in subjects if c.model != RUNNER]
    exported = dict(zip(programs, export_cases(programs, targets, progress), strict=True))

    def one(case: Case) -> Measured | HarnessError:
        target = targets[case.target]
        # a default memory mode that was named is not part of the target's name
        named = Case(target.name, case.model)
        try:
            if case.model == RUNNER:
                return measure_firmware(named, build(pick(target).target, progress=progress))
            found = exported[case]
            return found if isinstance(found, HarnessError) else measure_program(named, found)
        except HarnessError as error:
            return error

    return [one(case) for case in subjects]


def measure_program(case: Case, program: Program) -> Measured:
    anatomy = measure_file(program.pte_path)
    return Measured(case, "program", ANY_TOOLCHAIN, anatomy, program_figures(anatomy))


def measure_firmware(case: Case, firmware: Firmware) -> Measured:
    regions = firmware.regions
    anatomy = measure_file(firmware.elf, regions, firmware.map)
    figures = firmware_figures(anatomy.parts, [r.name for r in regions])
    return Measured(case, "firmware", firmware.toolchain_id, anatomy, figures)
