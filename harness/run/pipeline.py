"""Run cases: pick, export and build, simulate, gather, judge, record.

``run_cases`` exports what is not cached in one process while the firmware of each target is built,
then simulates and judges the cases in parallel. A case that fails early still gets a record, and
never stops the others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.config.case import Case, is_allowed
from harness.config.case_budgets import budgets_of, tolerance_of
from harness.config.loading import load_target, loadable_name
from harness.config.target import Target
from harness.core.errors import HarnessError, ToolMissing, UsageError
from harness.core.simulator_name import SimulatorName
from harness.export.batch import ExportOptions
from harness.export.checkout import selected_exporter
from harness.export.exporter import WHEEL, ExporterChoice
from harness.export.program import Program
from harness.firmware.checkout import Checkout
from harness.firmware.choice import FirmwareChoice
from harness.firmware.names import source_names
from harness.firmware.operators import equipped, require_possible
from harness.firmware.source import (
    Arithmetic,
    BuildRequest,
    Firmware,
    FirmwareSource,
    build_options,
    built_with,
    label,
)
from harness.firmware.zephyr.workspace import require_workspace
from harness.judge.reference import load_reference, references_of
from harness.run import remedies
from harness.run.directory import keep_expectations, new_run_dir, save_record
from harness.run.judging import RunPlan, expectation_of, record_run, static_metrics
from harness.run.record import RunRecord, failed_record
from harness.run.subjects import export_cases
from harness.run.two_runs import FinishedRun, compared
from harness.run.version_skew import export_to_fit, require_fit
from harness.sim.simulation import simulate
from harness.sim.simulator import AUTO, Chosen, missing_fvp_policy, pick, skip_without_fvp
from harness.size.memory_plan import EXECUTORCH_ALIGNMENT, require_sound_plan
from harness.system.cancellation import cancelling
from harness.system.paths import hil_command
from harness.system.progress import Progress, silent
from harness.system.settings import FvpPolicy, is_strict


@dataclass(frozen=True)
class RunOptions:
    """How to run or execute a case.

    ``beside``: another simulator, which is compared with the first. ``pte`` replaces the exported
    program by the user's file, judged by the export's inputs and expected outputs.
    ``tolerance_lsb``: the largest accepted difference in steps of the output's scale (None: what
    the budgets say). ``profile``: count ticks per operator. ``limit_factor`` multiplies all limits
    (None: as the settings say). ``fvp_missing``: "fail" or "skip" a case whose FVP is not installed
    (None: what the settings say). ``firmware`` and ``exporter``: whose. ``oracle``: whose
    arithmetic the outputs must show (None: the firmware's); the bundled runner is built to follow
    it, a checkout's is not changed. ``isolate_export``: export in the guests' sandbox; ``fresh``:
    without cached programs. ``strict``: a program that is not the one of the accepted run fails
    (None: what the settings say), and so does a case without an accepted run, unless ``allow_new``
    has it (``is_allowed``; a night and a bisection have runs of their own to compare with).
    ``accept_known_defects``: names of ExecuTorch's known defects that may pass, with the budgets'.
    """

    simulator: str = AUTO
    beside: str | None = None
    tolerance_lsb: float | None = None
    pte: Path | None = None
    profile: bool = False
    limit_factor: float | None = None
    fvp_missing: FvpPolicy | None = None
    firmware: FirmwareChoice = field(default_factory=FirmwareChoice)
    exporter: ExporterChoice = WHEEL
    oracle: Arithmetic | None = None
    isolate_export: bool = False
    fresh: bool = False
    strict: bool | None = None
    allow_new: tuple[str, ...] = ("*",)
    accept_known_defects: tuple[str, ...] = ()

    @property
    def may_export_with_checkout(self) -> bool:
        """Nobody said who exports, and every runner is the checkout's."""
        free = self.exporter == WHEEL and not self.isolate_export and self.pte is None
        return free and all(source.needs_checkout for source in self.firmware.sources)

    @property
    def words(self) -> tuple[str, ...]:
        """The options of ``hil run`` that a record does not tell otherwise."""
        words = [f"--part={name}={folder}" for name, folder in self.firmware.parts.items()]
        words += [f"--accept-known-defect={name}" for name in self.accept_known_defects]
        given = {
            "pte": self.pte,
            "tolerance": self.tolerance_lsb,
            "oracle": self.oracle,
            "limit-factor": self.limit_factor,
        }
        words += [f"--{name}={value}" for name, value in given.items() if value is not None]
        flags = {"profile": self.profile, "isolate-export": self.isolate_export}
        return (*words, *(f"--{name}" for name, chosen in flags.items() if chosen))

    @property
    def simulators(self) -> tuple[str, ...]:
        """Raises UsageError for more than one comparison."""
        names = (self.simulator,) if self.beside is None else (self.simulator, self.beside)
        if len(names) * len(self.firmware.sources) > 2:
            raise UsageError(
                "two runs of a case are compared, not more",
                hint="name two simulators, or two sources of firmware",
            )
        return names

    @property
    def skips_missing_fvp(self) -> bool:
        return (self.fvp_missing or missing_fvp_policy()) == "skip"


@dataclass(frozen=True)
class _Runner:
    """A simulator and a source of firmware. ``built``: None if it builds with the program."""

    chosen: Chosen
    source: FirmwareSource
    request: BuildRequest
    built: Future[Firmware] | None = None

    def require(self, options: RunOptions) -> None:
        """Raise ToolMissing, as far as it is known before an export of a minute."""
        if options.skips_missing_fvp:
            skip_without_fvp(self.chosen)
        self.chosen.require()
        self.source.require_tools(self.request)

    def building(self, pool: ThreadPoolExecutor, progress: Progress) -> _Runner:
        """Return the runner whose build is under way."""
        if self.source.embeds_program(self.chosen.target):
            return self
        return replace(self, built=pool.submit(self.source.build, self.request, progress))

    def firmware(self, pte: Path, progress: Progress) -> Firmware:
        """Built for ``pte`` if need be. Raises what the build does."""
        if self.built is not None:
            return self.built.result()
        return self.source.build(replace(self.request, program=pte), progress)


def run_cases(
    cases: Sequence[Case], options: RunOptions, progress: Progress = silent
) -> list[RunRecord]:
    """One record per case, simulator and source of firmware, in order.

    Raises UsageError, and what is wrong with a checkout or a Zephyr workspace, before any work.
    """
    simulators, checkout = options.simulators, options.firmware.checkout()
    exporter = selected_exporter(options.exporter)
    exporting = ExportOptions(exporter, isolate=options.isolate_export, fresh=options.fresh)
    targets = {name: load_target(name) for name in {c.target for c in cases}}
    cases = [replace(c, target=loadable_name(targets[c.target], c.target)) for c in cases]
    _validate(cases, options)
    runners = {
        loadable_name(target, name): _runners(target, simulators, options, checkout)
        for name, target in targets.items()
    }
    missing = {name: _missing(there, options) for name, there in runners.items()}
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool, cancelling(pool):
        for name, there in runners.items():
            if missing[name] is None:
                runners[name] = [each.building(pool, progress) for each in there]
        boards = {name: there[0].chosen.target for name, there in runners.items()}
        possible = [case for case in dict.fromkeys(cases) if missing[case.target] is None]
        exported = export_cases(possible, boards, progress, exporting) if possible else []
        programs = dict(zip(possible, exported, strict=True))
        if options.may_export_with_checkout and checkout is not None:
            source = options.firmware.sources[0]
            programs = export_to_fit(programs, boards, checkout, source, exporting, progress)
        pending = []
        for case in cases:
            program = missing[case.target] or programs[case]
            ways = ((case, program, each, options, progress) for each in runners[case.target])
            pending.append([pool.submit(_run_one, *way) for way in ways])
        finished = [[run.result() for run in runs] for runs in pending]
        if any(len(runs) > 1 for runs in finished):
            progress("comparing the two runs")
        return [record for runs in finished for record in _records(runs)]


def _runners(
    target: Target, simulators: Sequence[str], options: RunOptions, checkout: Checkout | None
) -> list[_Runner]:
    """Return the ways to run the cases of a target. Raises what is wrong before any work."""
    runners = []
    for chosen in [pick(target, each, options.firmware.root) for each in simulators]:
        board, wanted = chosen.target, build_options(options.oracle)
        for source in options.firmware.sources:
            runners.append(
                _Runner(chosen, source, BuildRequest(board, chosen.name, checkout, wanted))
            )
            source.check(runners[-1].request)
        if board.zephyr is not None:
            require_workspace(board.zephyr.board, board.cpu)
    return runners


def _missing(runners: Sequence[_Runner], options: RunOptions) -> HarnessError | None:
    try:
        for runner in runners:
            runner.require(options)
    except ToolMissing as error:
        return error
    return None


def _validate(cases: Sequence[Case], options: RunOptions) -> None:
    """Raise UsageError for a bad variable, option or reference, before any work starts."""
    for case in cases:
        tolerance_of(case, budgets_of(case), options.tolerance_lsb)
        for name in source_names():
            load_reference(references_of(case), case, name)


def _run_one(
    case: Case,
    program: Program | HarnessError,
    runner: _Runner,
    options: RunOptions,
    progress: Progress,
) -> FinishedRun | RunRecord:
    """Return the run, or the record of what prevented it."""
    chosen, source = runner.chosen, runner.source
    try:
        if isinstance(program, HarnessError):
            raise program
        if options.pte is None:
            exporting = ExportOptions(None, isolate=options.isolate_export)
            remedies.require_possible(case, chosen.target, source, program, exporting, progress)
            require_sound_plan(program.pte_path, program.layers, EXECUTORCH_ALIGNMENT)
        else:
            require_possible(source, chosen.target, options.pte)
            require_sound_plan(options.pte)
        firmware = runner.firmware(options.pte or program.pte_path, progress)
        return _run(case, chosen, program, firmware, options, progress)
    except Exception as error:  # the boundary of a case: the others go on
        return failed_record(case, error, source.name)


def _records(runs: Sequence[FinishedRun | RunRecord]) -> list[RunRecord]:
    """Return the records of a case's runs. Two that finished are compared with each other."""
    finished = [run for run in runs if isinstance(run, FinishedRun)]
    if len(finished) == 2:
        return [finished[0].record, compared(*finished)]
    return [run.record if isinstance(run, FinishedRun) else run for run in runs]


def run_case(
    case: Case,
    chosen: Chosen,
    program: Program,
    firmware: Firmware,
    options: RunOptions,
    progress: Progress = silent,
) -> RunRecord:
    """Simulate and judge one exported case; the record is saved in its run directory.

    Raises RunnerLacks for a program that the firmware cannot run, VersionSkew for one that
    it would misread, FvpMissing for a case to skip, InfraError when there is no run to be had.
    """
    return _run(case, chosen, program, firmware, options, progress).record


def _run(
    case: Case,
    chosen: Chosen,
    program: Program,
    firmware: Firmware,
    options: RunOptions,
    progress: Progress,
) -> FinishedRun:
    if options.skips_missing_fvp:
        skip_without_fvp(chosen)
    pte = options.pte or program.pte_path
    notes = _export_notes(program if options.pte is None else None, pte, firmware)
    request = BuildRequest(chosen.target, chosen.name, options=build_options(options.oracle))
    firmware = equipped(firmware, request, pte, progress)
    built = firmware.arithmetic if options.oracle is None else built_with(chosen.target.cmake)
    program = program.following(options.oracle or built)
    if firmware.source.follows_definitions:
        program = program.without_named_differences()
    same_arithmetic = program.arithmetic is built
    if not same_arithmetic:
        notes += (f"not compared with an accepted reference: none is of --oracle {options.oracle}",)
    strict = is_strict() if options.strict is None else options.strict
    expectation = expectation_of(
        case,
        program,
        firmware,
        pte,
        options.tolerance_lsb,
        with_references=same_arithmetic,
        strict=strict,
        accepted=options.accept_known_defects,
    )
    on_qemu = chosen.name is SimulatorName.QEMU and chosen.target.zephyr is None
    counts = on_qemu and bool(firmware.regions) and firmware.source.sizes_are_accepted
    expectation = replace(expectation, counts_instructions=counts)
    if strict and same_arithmetic:
        command = _accept_command(case, firmware.source, options)
        expectation = replace(expectation, accept_command=command)
    plan = RunPlan(
        case=case,
        chosen=chosen,
        program=program,
        firmware=firmware,
        pte=pte,
        expectation=expectation,
        static=static_metrics(firmware, pte, program.npu_cost if options.pte is None else None),
        export_notes=notes,
        options=options.words,
    )
    run_dir = new_run_dir(case.slug)
    progress(f"{case.title}: simulating")
    # The bundled runner counts by operator at the price of two reads of a clock.
    profile = options.profile or (counts and program.delegation is not None)
    record = run_planned(plan, run_dir, profile=profile, limit_factor=options.limit_factor)
    progress(f"{case.title}: simulated")
    return FinishedRun(plan, record)


def run_planned(
    plan: RunPlan, run_dir: Path, known: RunRecord | None = None, **how: Any
) -> RunRecord:
    """Simulate, judge, and save the record in ``run_dir``.

    ``known``: as in ``record_run``, ``how``: as in ``simulate``. Raises InfraError when there is no
    run to be had."""
    program = plan.program
    keep_expectations(program, run_dir)
    sets = [[program.directory / name for name in s.inputs] for s in program.sets]
    transcript = simulate(plan.chosen, plan.firmware, plan.pte, sets, run_dir=run_dir, **how)
    record = record_run(plan, transcript, known)
    save_record(record)
    return record


def _accept_command(case: Case, source: FirmwareSource, options: RunOptions) -> str:
    """ "" for a case that may be new."""
    if is_allowed(case, options.allow_new):
        return ""
    whose = f" --firmware {source.name}" if label(source.name) else ""
    if source.needs_checkout:
        whose += f" --executorch {options.firmware.root}"
    return f'{hil_command()} accept {case.id}{whose} --reason "..."'


def _export_notes(program: Program | None, pte: Path, firmware: Firmware) -> tuple[str, ...]:
    """Note differences from the firmware's own export. ``program``: None for a user's file."""
    checkout = None if firmware.checkout is None else Path(firmware.checkout.path)
    read = require_fit(pte, program, firmware.source, checkout)
    if program is None:
        return read
    own = () if program.exporter is None else program.exporter.notes
    return (*program.notes, *own, *read)
