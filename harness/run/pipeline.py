"""Run cases: the one place where the stages meet.

``run_cases`` exports what is not cached (all of it in one process), builds the firmware each
target needs meanwhile, then simulates and judges the cases in parallel. A case that fails
early still gets a record, and never stops the others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from harness.build.arithmetic import Arithmetic, build_options, built_with
from harness.build.choice import BUNDLED, FirmwareChoice, build_for
from harness.build.executorch.checkout import Checkout
from harness.build.firmware import Firmware
from harness.build.operators import needs_of, require
from harness.build.source import FirmwareSource
from harness.build.zephyr.workspace import require_workspace
from harness.case.budgets import budgets_of, tolerance_of
from harness.case.case import Case
from harness.errors import HarnessError, UsageError
from harness.errors.verdict import Verdict
from harness.export.checkout.choice import WHEEL, ExporterChoice
from harness.export.checkout.exporter import CheckoutExporter
from harness.export.program import Program
from harness.judge.evidence import Blame, Evidence, Expectation, Judgement
from harness.judge.reference import load_reference, load_truth, references_of
from harness.judge.rules import judge, may_be_blamed
from harness.run.directory import keep_expectations, kept_expectations, new_run_dir
from harness.run.exports import export_cases
from harness.run.gather import gather, gather_finished, static_metrics
from harness.run.identity import host, revision
from harness.run.record import (
    FirmwareFacts,
    ProgramFacts,
    RunRecord,
    SimulatorFacts,
    failed_record,
    load_record,
)
from harness.run.schema_fit import require_schema, schema_notes
from harness.run.seal import SealBroken
from harness.run.second_opinion import with_second_opinion
from harness.simulate.guest_files import output_base, output_name
from harness.simulate.pick import AUTO, Chosen, pick, skip_without_fvp
from harness.simulate.simulation import simulate
from harness.simulate.transcript import CONSOLE, WORK, Transcript
from harness.system.boundary import told
from harness.system.files import sha256_of
from harness.system.json_file import MALFORMED
from harness.system.progress import Progress, silent
from harness.target.loading import global_factor, load_target, spelled


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
    cases: Sequence[Case], options: RunOptions, progress: Progress = silent
) -> list[RunRecord]:
    """One record per case and source of firmware, in order.

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
            require_workspace(there.zephyr.board, there.cpu)  # it says at once how to get one
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        firmware = {
            (name, source): pool.submit(
                build_firmware, source, there, exporter, checkout, options, progress
            )
            for name, there in chosen.items()
            for source in sources
        }  # fmt: skip
        boards = {name: there.target for name, there in chosen.items()}
        programs = export_cases(cases, boards, progress, exporter, isolate=options.isolate_export)
        pending = [
            pool.submit(_run_one, case, chosen[case.target], program, source,
                        firmware[case.target, source], options, progress)
            for case, program in zip(cases, programs, strict=True)
            for source in sources
        ]  # fmt: skip
        records = [future.result() for future in pending]
        if len(sources) == 1:
            return records
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
) -> RunRecord:
    try:
        if isinstance(program, HarnessError):
            raise program
        return run_case(case, chosen, program, firmware.result(), options, progress)
    except Exception as error:  # the boundary of a case: the others go on
        return failed_record(case, _now(), told(error), source)


def run_case(
    case: Case,
    chosen: Chosen,
    program: Program,
    firmware: Firmware,
    options: RunOptions,
    progress: Progress = silent,
) -> RunRecord:
    """Simulate and judge one exported case; the record is saved in its run directory.

    Raises RunnerLacks for a program that the firmware cannot run, SchemaMismatch for one that
    it would misread, FvpMissing for a case to skip, InfraError when there is no run to be had.
    """
    progress(f"{case.id}: simulating")
    if options.fvp_missing == "skip":
        skip_without_fvp(chosen)
    pte = options.pte or program.pte_path
    require(firmware.images, needs_of(pte), firmware.source)
    of_export = _of_export(program, firmware) if options.pte is None else ()
    own = firmware.arithmetic if options.oracle is None else built_with(chosen.target.cmake)
    program = program.following(options.oracle or own)
    if firmware.source is FirmwareSource.BUNDLED:
        program = program.without_named_differences()
    held = program.arithmetic is own
    if not held:
        of_export += (f"no accepted reference is held: it is not of --oracle {options.oracle}",)
    expectation = _expectation(case, program, firmware, pte, options.tolerance_lsb, held=held)

    transcript = _simulated(case, chosen, program, firmware, pte, options)
    differences = (*_differences(chosen, firmware, transcript), *of_export)
    static = static_metrics(chosen.target, firmware, pte)
    evidence = gather_finished(program, firmware, transcript, static, differences)
    evidence, judgement = _judged(evidence, expectation, program, pte, transcript.run_dir / WORK)

    record = RunRecord(
        case=case,
        time=_now(),
        judgement=judgement,
        static_metrics=static,
        run_dir=str(transcript.run_dir),
        simulator=SimulatorFacts.of(transcript, differences),
        npu=transcript.npu,
        ending=evidence.ending,
        expectation=expectation,
        program=ProgramFacts(str(pte), expectation.pte_sha256, program.oracle_name,
                             tuple(asdict(agreement) for agreement in program.oracles),
                             program.operators, program.versions, program.exporter,
                             program.input_digests()),
        firmware=FirmwareFacts(str(firmware.elf), firmware.key, firmware.build_id,
                               firmware.toolchain_id, firmware.checkout, firmware.elf_sha256,
                               firmware.sources),
        seconds=_seconds(transcript, judgement),
        source=firmware.source,
        starts=transcript.starts,
        harness=revision(),
        host=host(),
    ).with_evidence(evidence, judgement)  # fmt: skip
    record.save()
    return record


def _seconds(transcript: Transcript, judgement: Judgement) -> dict[str, float]:
    """How long the simulation took; until its cause was on the console, or the last that was."""
    found = {"simulate": transcript.seconds}
    if judgement.cause is not None:
        found["cause"] = transcript.came(judgement.cause.line)
    return {name: round(seconds, 4) for name, seconds in found.items()}


def judge_again(run_dir: Path) -> RunRecord:
    """The verdict of a finished run, from its directory alone; nothing is executed or written.

    Raises UsageError when the directory does not hold a run, SealBroken when it is not the run
    that was judged.
    """
    record = replace(load_record(run_dir, whole=True), run_dir=str(run_dir))
    program = kept_expectations(run_dir) if (run_dir / CONSOLE).is_file() else None
    if program is None or record.ending is None or record.expectation is None:
        raise UsageError(f"{run_dir} does not hold a whole run", path=run_dir)
    try:
        evidence = gather(
            program,
            run_dir,
            record.ending,
            record.static_metrics,
            elf=None if record.firmware is None else Path(record.firmware.elf),
            npu=record.npu,
            differences=() if record.simulator is None else record.simulator.differences,
            mismatch_at=record.mismatch_at,
            blame=record.blame,
            starts=record.starts,
        )
    except (OSError, *MALFORMED) as error:
        raise UsageError(f"{run_dir} does not hold a whole run: {error}", path=run_dir) from error
    judgement = judge(evidence, record.expectation)
    if evidence.outputs.sha256 != record.output_sha256:
        if judgement.passed:
            raise SealBroken(run_dir, (WORK,))
        note = "its outputs are not those of the run: they were changed since"
        judgement = replace(judgement, notes=(*judgement.notes, note))
    return record.with_evidence(evidence, judgement)


def _expectation(
    case: Case,
    program: Program,
    firmware: Firmware,
    pte: Path,
    tolerance_lsb: float | None,
    *,
    held: bool,
) -> Expectation:
    """``held``: the accepted runs followed the same arithmetic."""
    pte_sha256 = _sha256(pte)
    root, budgets = references_of(case), budgets_of(case)
    reference = load_reference(root, case, firmware.source) if held else None
    truth = load_truth(root, case) if held else None
    return Expectation(
        build_id=firmware.build_id if firmware.source is FirmwareSource.BUNDLED else None,
        pte_unchanged=pte_sha256 == program.pte_sha256,
        pte_sha256=pte_sha256,
        toolchain=firmware.toolchain_id,
        tolerance_lsb=tolerance_of(case, budgets, tolerance_lsb),
        reference=None if reference is None else reference.without_anatomies(),
        budgets=budgets,
        source=firmware.source,
        truth=None if truth is None else truth.without_anatomies(),
    )


def _simulated(
    case: Case, chosen: Chosen, program: Program, firmware: Firmware, pte: Path, options: RunOptions
) -> Transcript:
    run_dir = new_run_dir(case.slug)
    transcript = simulate(
        chosen,
        firmware,
        program=pte,
        sets=[[program.directory / name for name in s.inputs] for s in program.sets],
        run_dir=run_dir,
        profile=options.profile,
        limit_factor=options.limit_factor,
        require_confinement=options.require_confinement,
    )
    keep_expectations(program, run_dir)
    return transcript


def _judged(
    evidence: Evidence, expectation: Expectation, program: Program, pte: Path, work: Path
) -> tuple[Evidence, Judgement]:
    """What may be an NPU's fault is looked into before it is told: where do NPU and TOSA first
    differ, and who made it so?"""
    judgement = judge(evidence, expectation)
    if judgement.cause is not None and may_be_blamed((judgement.verdict, judgement.cause)):
        from harness.localise.blame import explain  # numpy

        produced = partial(_produced, program, work)
        found = explain(program, pte, produced, independent=evidence.npu is None)
        if found is not None and (judgement.verdict is Verdict.MISMATCH or found[1].is_settling):
            place, blame = found
            why = Blame(blame.culprit, str(blame), blame.facts)
            evidence = replace(evidence, mismatch_at=place, blame=why)
            judgement = judge(evidence, expectation)
    return evidence, judgement


def _produced(program: Program, work: Path, input_set: int, output: int) -> bytes | None:
    """None for what is not there, and for what is not an output at all."""
    file = work / output_name(output_base(input_set), output)
    size = program.outputs[output].nbytes
    if file.is_symlink() or not file.is_file() or file.stat().st_size != size:
        return None
    return file.read_bytes()


def _differences(chosen: Chosen, firmware: Firmware, transcript: Transcript) -> tuple[str, ...]:
    """What of the board, or of the build, is otherwise than it would be on the real thing."""
    if firmware.source is FirmwareSource.BUNDLED:
        return (*chosen.differences, *transcript.stands_in)
    of_board = chosen.target.differences(chosen.name, moved=False)
    of_build = firmware.notes if firmware.checkout is None else firmware.checkout.notes
    return (*of_board, *transcript.stands_in, *of_build)


def _of_export(program: Program, firmware: Firmware) -> tuple[str, ...]:
    """What of the export is otherwise than a wheel of one commit would do it."""
    there = None if firmware.checkout is None else Path(firmware.checkout.path)
    own = () if program.exporter is None else program.exporter.notes
    read = schema_notes(program.exporter, firmware.source, there)
    return (*program.notes, *own, *read)


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
