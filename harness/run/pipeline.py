"""Run cases: the one place where the stages meet.

``run_cases`` exports what is not cached (all of it in one process), builds the firmware each
target needs meanwhile, then simulates and judges the cases in parallel. A case that fails
early still gets a record, and never stops the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.build.arithmetic import Arithmetic, build_options, built_with
from harness.build.choice import BUNDLED, FirmwareChoice, build_for
from harness.build.operators import needs_of, require
from harness.build.source import FirmwareSource
from harness.case.budgets import budgets_of, tolerance_of
from harness.case.case import Case
from harness.errors import HarnessError
from harness.export.checkout.choice import WHEEL, ExporterChoice
from harness.run.directory import keep_expectations, new_run_dir
from harness.run.exports import cached_cases, export_cases
from harness.simulate.pick import AUTO, Chosen, pick, skip_without_fvp
from harness.simulate.simulation import simulate
from harness.system.boundary import told
from harness.system.clock import now
from harness.system.progress import Progress, silent
from harness.target.loading import global_factor, load_target, spelled

if TYPE_CHECKING:
    from harness.build.executorch.checkout import Checkout
    from harness.build.firmware import Firmware
    from harness.export.checkout.exporter import CheckoutExporter
    from harness.export.program import Program
    from harness.run.judging import Prepared
    from harness.run.record import RunRecord
    from harness.simulate.transcript import Transcript


@dataclass(frozen=True)
class RunOptions:
    """How to run, beyond which case.

    ``pte`` replaces the exported program by a file of the user's, judged against the export's
    inputs and expected outputs. ``tolerance_lsb`` is the largest accepted difference in steps
    of the output's scale, where it is not what the budgets say (``tolerance_of``). ``profile``
    asks the runner for ticks per operator. ``limit_factor`` multiplies all limits (None:
    ``$HIL_LIMIT_FACTOR``). ``fvp_missing``: "fail" or "skip" a case whose FVP is not installed.
    ``dev_mode``: see ``find_workspace``. ``firmware``: whose. ``exporter``: who exports;
    ``isolate_export``: in the guests' sandbox. ``oracle``: whose arithmetic the outputs have to
    show (None: that which the firmware follows); our own runner is built to follow it, a
    checkout's is as it is. A guest that cannot be confined is not run with
    ``require_confinement`` (None: as ``confine.required`` has it).
    """

    simulator: str = AUTO
    tolerance_lsb: float | None = None
    pte: Path | None = None
    profile: bool = False
    limit_factor: float | None = None
    fvp_missing: str = "fail"
    dev_mode: bool = False
    firmware: FirmwareChoice = BUNDLED
    exporter: ExporterChoice = WHEEL
    oracle: Arithmetic | None = None
    isolate_export: bool = False
    require_confinement: bool | None = None


def run_cases(
    cases: Sequence[Case],
    options: RunOptions,
    progress: Progress = silent,
    meanwhile: Callable[[], object] | None = None,
) -> list[RunRecord]:
    """One record per case and source of firmware, in order. ``meanwhile``: as in ``run_case``.

    Raises UsageError, and what is wrong with a checkout or a Zephyr workspace, before any work.
    """
    sources = options.firmware.sources
    exporter = options.exporter.find()
    checkout = options.firmware.checkout()
    targets = {name: load_target(name) for name in {c.target for c in cases}}
    cases = [replace(c, target=spelled(targets[c.target], c.target)) for c in cases]
    _check_what_was_written(cases, options)
    chosen = {spelled(t, said): pick(t, options.simulator) for said, t in targets.items()}
    for there in (each.target for each in chosen.values()):
        if there.zephyr is not None:
            from harness.build.zephyr.workspace import require_workspace

            require_workspace(there.zephyr.board, there.cpu)  # it says at once how to get one
    boards = {name: there.target for name, there in chosen.items()}
    # Before there are threads, which would get in each other's way over nothing.
    there_already = None
    if exporter is None and not options.isolate_export:
        there_already = cached_cases(cases, boards)
    if len(cases) * len(sources) > 1:
        # Threads that come to one package from two sides may be given half of it: so Python ends
        # imports that wait for each other. One run alone imports it while its simulator works.
        import harness.run.judging  # noqa: F401
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        firmware = {
            (name, source): pool.submit(
                build_firmware, source, there, exporter, checkout, options, progress
            )
            for name, there in chosen.items()
            for source in sources
        }  # fmt: skip
        programs = there_already or export_cases(
            cases, boards, progress, exporter, isolate=options.isolate_export
        )
        pending = [
            pool.submit(_run_one, case, chosen[case.target], program, source,
                        firmware[case.target, source], options, progress, meanwhile)
            for case, program in zip(cases, programs, strict=True)
            for source in sources
        ]  # fmt: skip
        records = [future.result() for future in pending]
        if len(sources) == 1:
            return records
        from harness.run.second_opinion import with_second_opinion

        progress("comparing the two runners")
        ready = {key: future.result() for key, future in firmware.items() if not future.exception()}
        pairs = zip(records[::2], records[1::2], strict=True)  # a case's two follow each other
        return [
            record
            for case, program, pair in zip(cases, programs, pairs, strict=True)
            for record in with_second_opinion(program, chosen[case.target], pair, ready)
        ]


def _check_what_was_written(cases: Sequence[Case], options: RunOptions) -> None:
    """What somebody got wrong, in a variable, an option or a reference, is told before any work."""
    from harness.judge.reference import load_reference, references_of

    if options.limit_factor is None:
        global_factor()
    for case in cases:
        tolerance_of(case, budgets_of(case), options.tolerance_lsb)
        for source in FirmwareSource:
            load_reference(references_of(case), case, source)


def build_firmware(
    source: FirmwareSource,
    chosen: Chosen,
    exporter: CheckoutExporter | None,
    checkout: Checkout | None,
    options: RunOptions,
    progress: Progress,
) -> Firmware:
    """Raises SchemaMismatch before it builds for minutes."""
    if exporter is not None or checkout is not None:  # else both are of the installed wheel
        from harness.run.schema_fit import require_schema

        require_schema(None if exporter is None else exporter.facts, source, checkout)
    return build_for(
        source, chosen.target, chosen.name, checkout,
        options=build_options(options.oracle), dev_mode=options.dev_mode, progress=progress,
    )  # fmt: skip


def _run_one(
    case: Case,
    chosen: Chosen,
    program: Program | HarnessError,
    source: FirmwareSource,
    firmware: Future[Firmware],
    options: RunOptions,
    progress: Progress,
    meanwhile: Callable[[], object] | None,
) -> RunRecord:
    try:
        if isinstance(program, HarnessError):
            raise program
        return run_case(case, chosen, program, firmware.result(), options, progress, meanwhile)
    except Exception as error:  # the boundary of a case: the others go on
        from harness.run.record import failed_record

        return failed_record(case, now(), told(error), source)


def run_case(
    case: Case,
    chosen: Chosen,
    program: Program,
    firmware: Firmware,
    options: RunOptions,
    progress: Progress = silent,
    meanwhile: Callable[[], object] | None = None,
) -> RunRecord:
    """Simulate and judge one exported case; the record is saved in its run directory.

    Raises RunnerLacks for a program that the firmware cannot run, SchemaMismatch for one that
    it would misread, FvpMissing for a case to skip, InfraError when there is no run to be had.
    ``meanwhile``: for the caller, once the simulator has been started, which is as early as it can
    be: what judges is imported, and what needs no run is found, while the simulator works.
    """
    progress(f"{case.id}: simulating")
    if options.fvp_missing == "skip":
        skip_without_fvp(chosen)
    pte = options.pte or program.pte_path
    known = program.pte_sha256 if options.pte is None else None  # its bytes were just looked at
    require(firmware.images, needs_of(pte, known), firmware.source)
    of_export = _of_export(program, firmware) if options.pte is None else ()
    own = firmware.arithmetic if options.oracle is None else built_with(chosen.target.cmake)
    program = program.following(options.oracle or own)
    if firmware.source is FirmwareSource.BUNDLED:
        program = program.without_named_differences()
    held = program.arithmetic is own
    if not held:
        of_export += (f"no accepted reference is held: it is not of --oracle {options.oracle}",)

    @cache
    def prepared() -> Prepared:
        from harness.run.judging import Prepared, make_ready  # numpy is not, but 60 modules are

        found = Prepared.of(case, chosen, program, firmware, pte, options.tolerance_lsb,
                            of_export, held=held)  # fmt: skip
        make_ready()
        if meanwhile is not None:
            meanwhile()
        return found

    transcript = _simulated(case, chosen, program, firmware, pte, options, prepared)
    record = prepared().record(transcript, now())
    record.save()
    return record


def _simulated(
    case: Case,
    chosen: Chosen,
    program: Program,
    firmware: Firmware,
    pte: Path,
    options: RunOptions,
    meanwhile: Callable[[], object],
) -> Transcript:
    run_dir = new_run_dir(case.slug)

    def beside() -> None:
        meanwhile()
        keep_expectations(program, run_dir)

    return simulate(
        chosen,
        firmware,
        program=pte,
        sets=[[program.directory / name for name in s.inputs] for s in program.sets],
        run_dir=run_dir,
        profile=options.profile,
        limit_factor=options.limit_factor,
        require_confinement=options.require_confinement,
        meanwhile=beside,
    )


def _of_export(program: Program, firmware: Firmware) -> tuple[str, ...]:
    """What of the export is otherwise than a wheel of one commit would do it."""
    there = None if firmware.checkout is None else Path(firmware.checkout.path)
    own = () if program.exporter is None else program.exporter.notes
    if program.exporter is None and there is None:  # one schema, the installed wheel's
        return program.notes
    from harness.run.schema_fit import schema_notes

    read = schema_notes(program.exporter, firmware.source, there)
    return (*program.notes, *own, *read)
