"""Measures programs and runners, and compares their sizes with budgets and accepted sizes.

Nothing is run; programs and firmware are exported and built unless they are cached.

A subject is a case, ``TARGET/MODEL`` (its program), or ``TARGET/runner`` (the firmware). A strict
gate, as in CI, fails a subject without an accepted reference; it also fails an accepted file whose
model or target no longer exists, as such a file gates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.config.budgets import Budgets
from harness.config.case import OR_ALLOW, RUNNER, Case, is_allowed, is_user_file
from harness.config.case_budgets import budgets_of
from harness.config.figures import MeasuredIn
from harness.config.loading import load_target, load_targets, loadable_name
from harness.config.matrix import default_matrix, default_models, named_targets
from harness.config.models import known_models
from harness.core.errors import HarnessError, UsageError
from harness.export.estimates import NpuCost
from harness.export.program import Delegation, OutputAccuracy, Program
from harness.firmware.cache import read_firmware
from harness.firmware.names import source_names
from harness.firmware.source import Firmware, label
from harness.firmware.sources.bundled import build
from harness.judge.budget_check import CheckedFigure, FigureState, Shortfall, check, check_accuracy
from harness.judge.cost import NPU_FIGURE, Undelegated, check_delegation, npu_growth_sentences
from harness.judge.reference import (
    ANY_TOOLCHAIN,
    Reference,
    load_reference,
    read_reference,
    references_of,
)
from harness.run.subjects import export_cases
from harness.sim.simulator import pick
from harness.size.anatomy import Anatomy, Difference, difference, sentences
from harness.size.measure import (
    changes_behind,
    figures_of_firmware,
    figures_of_program,
    measure_file,
)
from harness.system.paths import hil_command, references_dir
from harness.system.progress import Progress, silent

_TOP_CAUSES = 5


@dataclass(frozen=True)
class Measured:
    """A case's program or a runner, ready to be compared. ``pte_sha256`` on: of a program."""

    case: Case
    stage: MeasuredIn  # "program" or "firmware"
    toolchain: str
    anatomy: Anatomy
    figures: dict[str, int]
    pte_sha256: str = ""
    accuracy: tuple[OutputAccuracy, ...] = ()
    delegation: Delegation | None = None
    npu_cost: NpuCost | None = None


def measure_cases(
    subjects: Sequence[Case], progress: Progress = silent
) -> list[Measured | HarnessError]:
    """One result per subject, in order; the error says why one could not be measured.

    Raises UsageError for a target or model that does not exist.
    """
    targets = {name: load_target(name) for name in {c.target for c in subjects}}
    programs = [c for c in subjects if c.model != RUNNER]
    exported = dict(zip(programs, export_cases(programs, targets, progress), strict=True))

    def measured(number: int, case: Case) -> Measured | HarnessError:
        progress(f"sizes: {number}/{len(subjects)}")
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

    return [measured(number, case) for number, case in enumerate(subjects, 1)]


def measure_program(case: Case, program: Program) -> Measured:
    anatomy = measure_file(program.pte_path)
    figures, cost = figures_of_program(anatomy), program.npu_cost
    if cost is not None:
        figures[NPU_FIGURE] = cost.cycles
    made = (program.pte_sha256, program.accuracy, program.delegation, cost)
    return Measured(case, "program", ANY_TOOLCHAIN, anatomy, figures, *made)


def measure_firmware(case: Case, firmware: Firmware) -> Measured:
    regions = firmware.regions
    anatomy = measure_file(firmware.elf, regions, firmware.map)
    figures = figures_of_firmware(anatomy.parts, [r.name for r in regions])
    return Measured(case, "firmware", firmware.toolchain_id, anatomy, figures)


def measure(file: Path, target: str | None = None, linker_map: Path | None = None) -> Anatomy:
    """Return the anatomy of a file. Raises UsageError for an unknown target.

    An ELF of the harness has its memory regions and map next to it."""
    if linker_map is None:
        beside = file.with_name(f"{file.name}.map")
        linker_map = beside if beside.is_file() else None
    if target is None:
        built = read_firmware(file.parent)
        return measure_file(file, () if built is None else built.regions, linker_map)
    return measure_file(file, load_target(target).memory, linker_map)


@dataclass(frozen=True)
class Gate:
    """The outcome for one subject.

    ``reasons`` has the top causes of each failed figure. ``is_new``: nothing was ever accepted
    for this toolchain, so nothing could be compared. ``refuses_new``: then it fails.
    """

    subject: str  # "corstone-300-m55/ds_cnn"
    toolchain: str
    findings: tuple[CheckedFigure, ...]
    reasons: dict[str, list[str]]
    difference: Difference | None
    refuses_new: bool = False
    measured: Measured | None = None  # None if it could not be measured
    accuracy: tuple[Shortfall, ...] = ()
    undelegated: Undelegated | None = None

    @property
    def failed(self) -> bool:
        failed = self.accuracy or self.undelegated or any(f.failed for f in self.findings)
        return bool(failed) or (self.refuses_new and self.is_new)

    @property
    def is_new(self) -> bool:
        return all(f.accepted is None for f in self.findings)

    @property
    def accept_command(self) -> str:
        only = "" if self.accuracy else " --only size"  # the accuracy is of what runs
        return f'{hil_command()} accept {self.subject}{only} --reason "..."'

    def message(self) -> str:
        """Why it failed, for a person: figures, causes, and the command that accepts."""
        lines = []
        failed = [f for f in self.findings if f.failed]
        for reasons, figures in groupby(failed, lambda f: self.reasons.get(f.figure, [])):
            lines += [f"{self.subject}: {f.describe()}" for f in figures]
            lines += [f"  {reason}" for reason in reasons]
        lines += [f"{self.subject}: {each.describe()}" for each in self.accuracy]
        if self.undelegated is not None:
            lines.append(f"{self.subject}: {self.undelegated.describe()}")
        if not lines:
            whose = f" with {self.toolchain}" if self.subject.endswith(f"/{RUNNER}") else ""
            lines.append(f"{self.subject}: new: nothing was accepted yet{whose} to compare it with")
            lines.append(f"accept it with: {self.accept_command}; {OR_ALLOW}")
        states = {f.state for f in failed}
        limited = any(each.accepted is None for each in self.accuracy) or self.undelegated
        if FigureState.OVER_LIMIT in states or limited:
            lines.append("a hard limit cannot be accepted: change the program, or the budget")
        elif (failed or self.accuracy) and states <= {FigureState.GROWN}:
            lines.append(f"accept it with: {self.accept_command}")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "toolchain": self.toolchain,
            "state": "failed" if self.failed else "new" if self.is_new else "ok",
            "figures": [
                {**asdict(f), "causes": self.reasons.get(f.figure, [])} for f in self.findings
            ],
            "accuracy": [asdict(each) for each in self.accuracy],
            "undelegated": self.undelegated and asdict(self.undelegated),
            "accept": self.accept_command if self.failed or self.is_new else None,
        }


def every_subject() -> list[Case]:
    """Return the runners and all models (``default_models``).

    It has a sample of the many Ethos-U targets, and runners for Zephyr where there is a workspace
    to build them in."""
    named = named_targets()
    targets = [target for _, target in named] or load_targets()
    workspace = "ZEPHYR_BASE" in os.environ
    runners = [
        Case(target.name, RUNNER)
        for target in targets
        if target.memory
        and (named or target.npu is None or target.npu.has_default_macs)
        and (target.zephyr is None or workspace)
    ]
    return runners + [case for case, _ in default_matrix(targets, default_models(), "sample")]


def subjects_of(target_name: str) -> list[Case]:
    """Return a target's runner and its models. Raises UsageError if the target does not exist."""
    runner = [RUNNER] if load_target(target_name).memory else []
    return [Case(target_name, model) for model in (*runner, *default_models())]


def gate_cases(
    subjects: Sequence[Case],
    progress: Progress = silent,
    *,
    strict: bool = False,
    allow_new: Sequence[str] = (),
) -> list[Gate]:
    """One gate per subject, in order.

    A subject that cannot be measured fails; with ``strict`` a new one fails too, except for those
    that ``allow_new`` names (``is_allowed``)."""
    gates = []
    for case, found in zip(subjects, measure_cases(subjects, progress), strict=True):
        gate = unmeasured(case, found) if isinstance(found, HarnessError) else hold_measured(found)
        gates.append(replace(gate, refuses_new=strict and not is_allowed(case, allow_new)))
    return gates


def unmeasured(case: Case, error: HarnessError) -> Gate:
    """Return the gate of a subject that could not be made: a failure, not a silence."""
    figure = "elf_loaded" if case.model == RUNNER else "pte_bytes"
    finding = CheckedFigure(figure, FigureState.NOT_MEASURED, None)
    return Gate(case.id, "", (finding,), {figure: [error.message]}, None)


def hold_measured(measured: Measured) -> Gate:
    reference = load_reference(references_of(measured.case), measured.case)
    return hold(measured, reference, budgets_of(measured.case))


def hold(measured: Measured, reference: Reference | None, budgets: Budgets) -> Gate:
    """Pure: the same facts give the same outcome."""
    accepted = {} if reference is None else reference.accepted(measured.toolchain)
    findings = check((measured.stage,), measured.figures, accepted, budgets)
    before = None if reference is None else reference.anatomies.get(measured.toolchain)
    found = None
    if before is not None:
        found = difference(before.anatomy, before.fold(measured.anatomy))
    reasons = {
        f.figure: sentences(changes_behind(f.figure, found))[:_TOP_CAUSES]
        for f in findings
        if found and f.failed
    }
    if NPU_FIGURE in {f.figure for f in findings if f.failed}:
        before_cost = None if reference is None else reference.npu_cost
        reasons[NPU_FIGURE] = npu_growth_sentences(before_cost, measured.npu_cost)
    # A firmware has no outputs of its own, so the accepted ones are not lost with it.
    before_run = reference.accuracy if reference and measured.stage == "program" else ()
    return Gate(
        measured.case.id,
        measured.toolchain,
        findings,
        reasons,
        found,
        measured=measured,
        accuracy=check_accuracy(measured.accuracy, before_run, budgets),
        undelegated=check_delegation(measured.delegation, budgets),
    )


@dataclass(frozen=True)
class LeftOver:
    """An accepted file that gates nothing.

    ``missing``: "model" or "target"; ``renamed``: the subjects that it may be called now."""

    subject: str
    reference: Path
    missing: str
    renamed: tuple[str, ...] = ()
    failed: bool = False

    def message(self) -> str:
        text = f"{self.subject}: {self.reference} is left over: there is no such {self.missing}"
        if self.renamed:
            new = " or ".join(self.renamed)
            return f"{text}; it was renamed to {new}, which has the same program: move the file"
        return f"{text}; remove the file, or bring the {self.missing} back"


def left_over(gates: Sequence[Gate] = (), *, strict: bool) -> list[LeftOver]:
    """Return the left-over files of the current folder of references, in order.

    ``strict`` fails each of them. Looks for its new name among the new subjects of ``gates``.
    Raises UsageError for a malformed reference."""
    new = [gate.measured for gate in gates if gate.is_new and gate.measured is not None]
    root = references_dir()
    targets = {target.name for target in load_targets()}
    found = []
    for path in sorted(root.rglob("*.json")):
        board, *rest = path.relative_to(root).parts
        # The name in ``add.json``, ``models/mine.py.executorch.json``, ``@/else/mine.py.json``.
        file = "/".join(rest)
        name = file.removesuffix(".json").removeprefix("@")
        for source in source_names():
            if label(source):
                name = name.removesuffix(f".{source}")
        missing = "" if name == RUNNER or _is_model(name, root) else "model"
        missing = missing if _is_target(board, targets) else "target"
        if missing:
            same_place = [
                one
                for one in new
                if (one.case.board == board if missing == "model" else one.case.name == name)
            ]
            accepted = read_reference(path)
            renamed = tuple(one.case.id for one in same_place if _is_same(accepted, one))
            found.append(LeftOver(f"{board}/{name}", path, missing, renamed, strict))
    return found


def _is_same(accepted: Reference, measured: Measured) -> bool:
    """Compare bytes or, where only sizes were accepted, the size of every part."""
    if accepted.pte_sha256 == measured.pte_sha256 != "":
        return True
    kept = accepted.anatomies.get(measured.toolchain)
    return kept is not None and kept.anatomy.parts == kept.of(measured.anatomy).anatomy.parts


def _is_target(board: str, known: set[str]) -> bool:
    if board.partition("@")[0] in known:
        return True
    try:
        load_target(board)
    except UsageError:
        return False
    return True


def _is_model(name: str, root: Path) -> bool:
    if not is_user_file(name):
        return name in known_models()
    # a user's model is named by its path in the repository, whose root may be above the settings
    return any((folder / name).is_file() for folder in root.absolute().parents)
