"""From what a run left to its record: evidence, judgement, expectation.

``record_run`` judges a finished run; ``judge_again`` judges a run directory without a simulator;
``gather`` reads what a run left as evidence. Nothing is executed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.config.case import Case
from harness.config.case_budgets import budgets_of, tolerance_of
from harness.config.known import Trouble
from harness.core.errors import MalformedFile, UsageError
from harness.core.judgement import Blame, Judgement, Reason
from harness.core.verdict import Verdict
from harness.export.estimates import NpuCost
from harness.export.program import Program
from harness.firmware.source import Firmware
from harness.judge.cost import NPU_FIGURE
from harness.judge.evidence import ByDesign, Evidence, Expectation, Outputs, TensorDiff, compare
from harness.judge.executorch_defects import ProgramDefect, defects_in
from harness.judge.program_contents import ProgramDifference
from harness.judge.reference import Reference, load_reference, load_truth, references_of
from harness.judge.rules import judge, may_be_blamed
from harness.judge.symbols import where_spinning, with_symbols
from harness.log.events import Observation
from harness.log.parser import parse_processes
from harness.run.cut_runs import CutRuns
from harness.run.directory import SealBroken, kept_expectations, load_record
from harness.run.record import FirmwareFacts, ProgramFacts, RunRecord, harness_revision, host, now
from harness.sim.run_files import CONSOLE, WORK, is_output, output_base, output_name, read_output
from harness.sim.simulator import Chosen
from harness.sim.transcript import Ending, Transcript
from harness.size.elf_anatomy import section_parts
from harness.size.measure import figures_of_firmware
from harness.system.files import MALFORMED, read_regular, sha256_of


@dataclass(frozen=True)
class RunPlan:
    """A case that is ready to be simulated.

    ``pte``: the program's own file, or the user's in its place. ``export_notes``: what a record has
    to say of the export. ``static``: the figures that need no run. ``options``: as in RunRecord."""

    case: Case
    chosen: Chosen
    program: Program
    firmware: Firmware
    pte: Path
    expectation: Expectation
    static: dict[str, int]
    export_notes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def cut(self, input_set: int) -> CutRuns:
        """Return the runs of its program, cut after an instruction."""
        return CutRuns(self.chosen, self.firmware, self.program, self.pte, input_set)


def record_run(plan: RunPlan, transcript: Transcript, known: RunRecord | None = None) -> RunRecord:
    """Return the record of the run, judged; it is not saved yet.

    ``known``: the record of the same run on another machine; with the same outputs the same is to
    blame."""
    program, firmware = plan.program, plan.firmware
    differences = (*_differences(plan.chosen, firmware, transcript), *plan.export_notes)
    if known is not None and known.simulator is not None:
        differences = known.simulator.differences
    unjudged = RunRecord(
        case=plan.case,
        time=now(),
        judgement=Judgement(Verdict.NO_VERDICT),
        static_metrics=plan.static,
        run_dir=str(transcript.run_dir),
        simulator=replace(transcript.simulator, differences=differences),
        npu=transcript.npu,
        ending=ending(transcript, firmware.elf),
        expectation=plan.expectation,
        program=ProgramFacts.of(program, plan.pte, plan.expectation.pte_sha256),
        firmware=FirmwareFacts.of(firmware),
        source=firmware.source.name,
        starts=transcript.starts,
        options=plan.options,
        harness=harness_revision(),
        host=host(),
    )
    evidence = gather(program, unjudged, transcript.observation)
    if known is None:
        evidence, judgement = _judged(evidence, plan)
    else:
        if evidence.outputs.sha256 == known.output_sha256:
            evidence = replace(evidence, mismatch_at=known.mismatch_at, blame=known.blame)
        judgement = judge(evidence, plan.expectation)
    judgement = _with_edits(judgement, firmware)
    seconds = _seconds(transcript, judgement)
    return replace(unjudged, seconds=seconds).with_evidence(evidence, judgement)


def judge_again(run_dir: Path) -> RunRecord:
    """Judge a finished run from its directory alone; nothing is executed or written.

    Raises UsageError when the directory does not hold a run, SealBroken when it is not the run that
    was judged."""
    record = replace(load_record(run_dir, whole=True), run_dir=str(run_dir))
    program = kept_expectations(run_dir) if (run_dir / CONSOLE).is_file() else None
    if program is None or record.ending is None or record.expectation is None:
        raise UsageError(f"{run_dir} does not hold a whole run", path=run_dir)
    try:
        evidence = gather(program, record)
    except (OSError, *MALFORMED) as error:
        raise UsageError(f"{run_dir} does not hold a whole run: {error}", path=run_dir) from error
    judgement = judge(evidence, record.expectation)
    if evidence.outputs.sha256 != record.output_sha256:
        if judgement.passed:
            raise SealBroken(run_dir, (WORK,))
        note = "its outputs are not those of the run: they were changed since"
        judgement = replace(judgement, notes=(*judgement.notes, note))
    return record.with_evidence(evidence, judgement)


def _with_edits(judgement: Judgement, firmware: Firmware) -> Judgement:
    """Names the edited files of a checkout in the cause of what it failed."""
    cause, edited = judgement.cause, firmware.checkout.edited if firmware.checkout else ()
    if cause is None or not edited:
        return judgement
    facts = {**(cause.facts or {}), "edited": list(edited)}
    return replace(judgement, cause=replace(cause, facts=facts))


def _seconds(transcript: Transcript, judgement: Judgement) -> dict[str, float]:
    """Seconds of the simulation, and until its cause, or the last line, was on the console."""
    found = {"simulate": transcript.ending.seconds}
    if judgement.cause is not None:
        found["cause"] = transcript.came(judgement.cause.line)
    return {name: round(seconds, 4) for name, seconds in found.items()}


def expectation_of(
    case: Case,
    program: Program,
    firmware: Firmware,
    pte: Path,
    tolerance_lsb: float | None,
    *,
    with_references: bool,
    strict: bool = False,
    accepted: Sequence[str] = (),
) -> Expectation:
    """Return what is expected of a case.

    ``with_references``: whether the accepted runs followed the same arithmetic; ``strict``: as in
    Expectation; ``accepted``: names of known defects, besides those of the budgets. Raises
    UsageError for a ``pte`` that cannot be read, a malformed reference or a bad tolerance."""
    try:
        pte_sha256 = sha256_of(pte)
    except OSError as error:
        raise UsageError(f"cannot read {pte}: {error.strerror}", path=pte) from error
    root, budgets = references_of(case), budgets_of(case)
    reference = load_reference(root, case, firmware.source.name) if with_references else None
    truth = load_truth(root, case) if with_references else None
    found, unread = _known_defects(pte)
    defects = [
        defect
        for defect in found  # the outputs tell what ExecuTorch's own kernels make of them
        if firmware.source.follows_definitions or defect.known.trouble is Trouble.VIEW
    ]
    names = {*budgets.accept_known_defects, *accepted}
    expectation = Expectation(
        build_id=firmware.printed_build_id,
        pte_unchanged=pte_sha256 == program.pte_sha256,
        pte_sha256=pte_sha256,
        toolchain=firmware.toolchain_id,
        tolerance_lsb=tolerance_of(case, budgets, tolerance_lsb),
        reference=reference,
        budgets=budgets,
        prints_all_figures=firmware.source.prints_all_figures,
        truth=truth,
        strict=strict,
        defects=tuple(d for d in defects if d.name not in names),
        accepted_defects=tuple(d for d in defects if d.name in names),
        defects_unread=unread,
    )
    other = expectation.other_program
    return replace(
        expectation,
        reference=None if reference is None else reference.figures_and_outputs(),
        truth=None if truth is None else truth.figures_and_outputs(),
        program_difference=None if other is None else _difference(other, pte),
    )


def _known_defects(pte: Path) -> tuple[tuple[ProgramDefect, ...], str]:
    """Return the known defects of ExecuTorch in a program; or none, and why they are not known."""
    try:
        return defects_in(pte), ""
    except MalformedFile as error:
        return (), error.message


def _difference(accepted: Reference, pte: Path) -> ProgramDifference:
    from harness.judge.pte_contents import difference_from  # numpy, where another program ran only

    return difference_from(accepted.contents, pte)


def _judged(evidence: Evidence, plan: RunPlan) -> tuple[Evidence, Judgement]:
    """Judges the evidence and adds where it first differs from the oracle, and whose fault."""
    judgement = judge(evidence, plan.expectation)
    if judgement.cause is None or not may_be_blamed((judgement.verdict, judgement.cause)):
        return evidence, judgement
    place, blame = _explained(judgement, plan, independent=evidence.npu is None)
    evidence = replace(evidence, mismatch_at=place, blame=blame)
    return evidence, judge(evidence, plan.expectation)


def _explained(
    judgement: Judgement, plan: RunPlan, *, independent: bool
) -> tuple[str | None, Blame | None]:
    """Find place and blame of a failure: a known defect, the NPU, or operators on the CPU.

    ``independent``: as in ``blame.explain``."""
    cause = judgement.cause
    assert cause is not None
    if cause.kind == Reason.KNOWN_DEFECT:
        defect = plan.expectation.defects[0]
        return defect.place, defect.blame
    # numpy and the NPU's model, which few runs need
    from harness.judge.blame import Culprit, explain

    program, pte = plan.program, plan.pte
    npu = explain(program, pte, lambda n, k: plan.cut(k).delegate(n), independent=independent)
    # that it is the runner explains nothing yet
    if npu is not None and npu[1].culprit is not Culprit.RUNNER:
        known = cause.kind != Reason.NPU_UNSUPPORTED or npu[1].defect  # else it may be right
        return (npu[0], npu[1].judged) if known else (None, None)
    if judgement.verdict is not Verdict.MISMATCH:
        # Our runner takes most of what ExecuTorch refuses, and refuses some of what it gets wrong.
        ours = plan.firmware.source.follows_definitions
        met = (
            d
            for d in _known_defects(plan.pte)[0]
            if (d.operator in cause.text if ours else d.known.trouble is Trouble.REFUSED)
        )
        return next(((d.place, d.blame) for d in met), (None, None))
    if cause.kind == Reason.OUTPUTS_DIFFER:
        from harness.run.cpu_blame import blame_on_cpu

        facts = cause.facts or {}
        place, blame = blame_on_cpu(plan.cut(facts["input_set"]), facts["output"])
        if blame is not None or npu is None:
            return place, blame
    return (None, None) if npu is None else (npu[0], npu[1].judged)


def _differences(chosen: Chosen, firmware: Firmware, transcript: Transcript) -> tuple[str, ...]:
    if firmware.source.linked_for_simulator:
        return (*chosen.differences, *transcript.stands_in)
    of_board = chosen.target.differences(chosen.name, moved=False)
    of_build = firmware.notes if firmware.checkout is None else firmware.checkout.notes
    return (*of_board, *transcript.stands_in, *of_build)


def gather(program: Program, record: RunRecord, observation: Observation | None = None) -> Evidence:
    """Return the evidence of a run of ``program``.

    Uses only those facts of the record that are not in the run directory. ``observation``: parsed
    during the run; None parses the kept console."""
    assert record.run_dir is not None
    assert record.ending is not None
    run_dir = Path(record.run_dir)
    console = run_dir / CONSOLE
    if observation is None:
        observation = parse_processes(read_regular(console), record.starts)
    if record.firmware is not None:
        observation = with_symbols(observation, Path(record.firmware.elf))
    return Evidence(
        observation,
        record.ending,
        read_outputs(program, run_dir / WORK),
        {**record.static_metrics, **program_figures(observation), **_counted(record, observation)},
        record.npu,
        () if record.simulator is None else record.simulator.differences,
        record.mismatch_at,
        record.blame,
        console.stat().st_size if console.exists() else None,
        program.accuracy,
        program.witness,
        program.delegation,
        program.npu_cost,
    )


def read_outputs(program: Program, work: Path) -> Outputs:
    """Compare every output file of a run with what the Program expects."""
    diffs: list[TensorDiff] = []
    by_design: list[TensorDiff] = []
    missing: list[str] = []
    misshapen: list[str] = []
    digests: list[tuple[str, ...]] = []
    declared: set[str] = set()
    for k in range(len(program.sets)):
        raws: list[bytes] = []
        for n, spec in enumerate(program.outputs):
            file = work / output_name(output_base(k), n)
            declared.add(file.name)
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
    named = ByDesign(program.by_design, tuple(by_design))
    # wherever the guest left them
    written = {name for _, _, names in os.walk(work) for name in names if is_output(name)}
    return Outputs(
        tuple(diffs),
        tuple(missing),
        tuple(misshapen),
        tuple(digests),
        named if by_design else None,
        tuple(sorted(written - declared)),
    )


def _compared(program: Program, k: int, n: int, raw: bytes) -> tuple[TensorDiff, TensorDiff | None]:
    """Compare output ``n`` of set ``k`` with the definition that it is nearer to.

    When it is exactly what the named differences make, also with the one without them."""
    spec, names = program.outputs[n], program.sets[k]
    expected = compare(spec, k, raw, read_regular(program.directory / names.expected[n]))
    if expected.exact or not names.by_design:
        return expected, None
    designed = compare(spec, k, raw, read_regular(program.directory / names.by_design[n]))
    if designed.exact:
        return designed, expected
    return min(designed, expected, key=lambda diff: diff.worst_abs), None


def ending(transcript: Transcript, elf: Path | None = None) -> Ending:
    """Return the ending with what the CPU was doing, by the functions of ``elf``."""
    cpu = transcript.cpu
    where = None if cpu is None else where_spinning(cpu, elf)
    return replace(transcript.ending, where=where)


def _counted(record: RunRecord, observation: Observation) -> dict[str, int]:
    if record.expectation is None or not record.expectation.counts_instructions:
        return {}
    ticks = [n for name, n in observation.metrics.items() if name.startswith("ticks_set")]
    return {"cpu_instructions": max(ticks)} if ticks else {}


def program_figures(observation: Observation) -> dict[str, int]:
    """Return the console's figures without the memory where our runner counted ticks."""
    figures = dict(observation.metrics)
    if observation.op_ticks:
        counting = figures.get("method_allocator_executor", 0)
        for name in figures.keys() & {"method_allocator_executor", "method_allocator_used"}:
            figures[name] -= counting
    return figures


def static_metrics(firmware: Firmware, pte: Path, cost: NpuCost | None) -> dict[str, int]:
    """Return the figures that need no run: of the program's file, and of the ELF by region.

    There are regions where there is a memory map. Only our runner has sections that hold pools and
    nothing else, and a size as a file system stores it. ``cost``: of the program, if that is the
    one that runs."""
    found, ours = {"pte_bytes": pte.stat().st_size}, firmware.source.sizes_are_accepted
    if cost is not None:
        found[NPU_FIGURE] = cost.cycles
    if regions := firmware.regions:
        elf = figures_of_firmware(section_parts(firmware.elf, regions), [r.name for r in regions])
        found |= {n: v for n, v in elf.items() if ours or not n.endswith(("_pools", "_no_pools"))}
    if ours and firmware.stored_bytes is not None:
        found["elf_stripped"] = firmware.stored_bytes
    return found
