"""Cases to gates: export, build, measure, and hold against what was accepted. Runs nothing.

A subject is a case, ``TARGET/MODEL`` (its program), or ``TARGET/runner`` (the firmware).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.build.firmware import Firmware, build
from harness.case.budgets import budgets_of
from harness.case.case import Case
from harness.case.matrix import default_cases
from harness.case.models import catalogue
from harness.errors import HarnessError, InfraError
from harness.export.program import Program
from harness.footprint.anatomy import Anatomy
from harness.footprint.figures import firmware_figures, program_figures
from harness.footprint.measure import measure_file
from harness.run.pipeline import export_cases
from harness.simulate.pick import pick
from harness.size.accepted import (
    ANY_TOOLCHAIN,
    RUNNER,
    AcceptedSizes,
    change,
    load_sizes,
    propose,
    size_path,
)
from harness.size.files import as_regions
from harness.size.ratchet import Gate, hold, unmeasured
from harness.system.paths import references_dir
from harness.system.progress import Progress, silent
from harness.target.loading import load_target, load_targets


@dataclass(frozen=True)
class Measured:
    """A subject with its anatomy, ready to be held against budgets or to be accepted."""

    case: Case
    toolchain: str
    anatomy: Anatomy
    figures: dict[str, int]


@dataclass(frozen=True)
class SizeProposal:
    case: Case
    path: Path
    change: str
    written: bool

    def text(self) -> str:
        if not self.change:
            return f"{self.case.id}: nothing changes, {self.path} already says this"
        done = "written: review and commit it" if self.written else "not written (--dry-run)"
        return f"{self.change}\n{self.path} {done}"

    def summary(self) -> dict[str, Any]:
        return {"case": self.case.id, "reference": str(self.path), "diff": self.change,
                "written": self.written}  # fmt: skip


def every_subject() -> list[Case]:
    """The runners and the catalogue's models; of the many Ethos-U targets a sample."""
    targets = load_targets()
    runners = [
        Case(target.name, RUNNER)
        for target in targets
        if target.memory and (target.npu is None or target.npu.has_default_macs)
    ]
    return runners + [case for case, _ in default_cases(targets, list(catalogue()), "sample")]


def gate_cases(subjects: Sequence[Case], progress: Progress = silent) -> list[Gate]:
    """One gate per subject, in order. What cannot be measured is a failed gate."""
    return [
        unmeasured(case.id, "elf_loaded" if case.model == RUNNER else "pte_bytes", found)
        if isinstance(found, HarnessError)
        else hold_measured(found)
        for case, found in zip(subjects, measure_cases(subjects, progress), strict=True)
    ]


def measure_cases(
    subjects: Sequence[Case], progress: Progress = silent
) -> list[Measured | HarnessError]:
    """Export and build what is not cached, then measure it."""
    targets = {name: load_target(name) for name in {c.target for c in subjects}}
    programs = [c for c in subjects if c.model != RUNNER]
    exported = dict(zip(programs, export_cases(programs, targets, progress), strict=True))

    def one(case: Case) -> Measured | HarnessError:
        try:
            if case.model == RUNNER:
                return measure_firmware(
                    case, build(pick(targets[case.target]).target, progress=progress)
                )
            found = exported[case]
            return found if isinstance(found, HarnessError) else measure_program(case, found)
        except HarnessError as error:
            return error

    return [one(case) for case in subjects]


def measure_program(case: Case, program: Program) -> Measured:
    anatomy = measure_file(program.pte_path)
    return Measured(case, ANY_TOOLCHAIN, anatomy, program_figures(anatomy))


def measure_firmware(case: Case, firmware: Firmware) -> Measured:
    regions = as_regions(firmware.regions)
    anatomy = measure_file(firmware.elf, regions, firmware.map)
    return Measured(
        case, firmware.toolchain_id, anatomy, firmware_figures(anatomy, [r.name for r in regions])
    )


def hold_measured(measured: Measured) -> Gate:
    case = measured.case
    accepted = load_sizes(size_path(references_dir(), case.target, case.label))
    runner = case.model == RUNNER
    budgets = load_target(case.target).budgets if runner else budgets_of(case)
    return hold(case.id, measured.anatomy, measured.figures, measured.toolchain, accepted, budgets)


def accept_sizes(measured: Measured, reason: str, *, dry_run: bool = False) -> SizeProposal:
    """Write the measured size as the accepted one, with its reason, as a reviewable diff."""
    case = measured.case
    path = size_path(references_dir(), case.target, case.label)
    old = load_sizes(path)
    new = propose(
        old, measured.anatomy, measured.figures, measured.toolchain,
        reason=reason, when=datetime.now(timezone.utc).date().isoformat(),
    )  # fmt: skip
    same = old is not None and replace(old, history=new.history).render() == new.render()
    if not same and not dry_run:
        _write(path, new)
    return SizeProposal(case, path, "" if same else change(path, old, new), not (same or dry_run))


def _write(path: Path, sizes: AcceptedSizes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".json.new")
        temporary.write_text(sizes.render())
        temporary.replace(path)
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}", path=str(path)) from error
