"""From what a run left to its record: the evidence, the judgement, what was held against it.

``Prepared`` is all that needs no run, found while the simulator works.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from harness.build.firmware import Firmware
from harness.build.source import FirmwareSource
from harness.case.budgets import budgets_of, tolerance_of
from harness.case.case import Case
from harness.errors import UsageError
from harness.errors.verdict import Verdict
from harness.export.program import Program
from harness.judge.evidence import (
    Blame,
    Evidence,
    Expectation,
    Judgement,
)
from harness.judge.reference import load_reference, load_truth, references_of
from harness.judge.rules import judge, may_be_blamed
from harness.run.directory import kept_expectations
from harness.run.gather import gather, gather_finished, static_metrics
from harness.run.identity import host, revision
from harness.run.record import FirmwareFacts, ProgramFacts, RunRecord, SimulatorFacts, load_record
from harness.run.seal import SealBroken
from harness.simulate.guest_files import output_base, output_name
from harness.simulate.pick import Chosen
from harness.simulate.transcript import CONSOLE, WORK, Transcript
from harness.system.files import sha256_of
from harness.system.json_file import MALFORMED
from harness.target.figures import FIGURES


def make_ready() -> None:
    """What every run has at its end, while the simulator works: patterns."""
    for row in FIGURES:
        assert row.pattern


@dataclass(frozen=True)
class Prepared:
    """``of_export``: what of the export a record has to say."""

    case: Case
    chosen: Chosen
    program: Program
    firmware: Firmware
    pte: Path
    of_export: tuple[str, ...]
    expectation: Expectation
    static: dict[str, int]
    input_digests: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls,
        case: Case,
        chosen: Chosen,
        program: Program,
        firmware: Firmware,
        pte: Path,
        tolerance_lsb: float | None,
        of_export: tuple[str, ...],
        *,
        held: bool,
    ) -> Prepared:
        """``held``: the accepted runs followed the same arithmetic. Raises UsageError."""
        expectation = _expectation(case, program, firmware, pte, tolerance_lsb, held=held)
        static = static_metrics(chosen.target, firmware, pte)
        digests = program.input_digests()
        return cls(case, chosen, program, firmware, pte, of_export, expectation, static, digests)

    def record(self, transcript: Transcript, time: str) -> RunRecord:
        """The record of the run, judged; it is not saved yet."""
        program, firmware = self.program, self.firmware
        differences = (*_differences(self.chosen, firmware, transcript), *self.of_export)
        evidence = gather_finished(program, firmware, transcript, self.static, differences)
        work = transcript.run_dir / WORK
        evidence, judgement = _judged(evidence, self.expectation, program, self.pte, work)
        return RunRecord(
            case=self.case,
            time=time,
            judgement=judgement,
            static_metrics=self.static,
            run_dir=str(transcript.run_dir),
            simulator=SimulatorFacts.of(transcript, differences),
            npu=transcript.npu,
            ending=evidence.ending,
            expectation=self.expectation,
            program=ProgramFacts(str(self.pte), self.expectation.pte_sha256, program.oracle_name,
                                 tuple(asdict(agreement) for agreement in program.oracles),
                                 program.operators, program.versions, program.exporter,
                                 self.input_digests),
            firmware=FirmwareFacts(str(firmware.elf), firmware.key, firmware.build_id,
                                   firmware.toolchain_id, firmware.checkout, firmware.elf_sha256,
                                   firmware.sources),
            seconds=_seconds(transcript, judgement),
            source=firmware.source,
            starts=transcript.starts,
            harness=revision(),
            host=host(),
        ).with_evidence(evidence, judgement)  # fmt: skip


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


def _seconds(transcript: Transcript, judgement: Judgement) -> dict[str, float]:
    """How long the simulation took; until its cause was on the console, or the last that was."""
    found = {"simulate": transcript.seconds}
    if judgement.cause is not None:
        found["cause"] = transcript.came(judgement.cause.line)
    return {name: round(seconds, 4) for name, seconds in found.items()}


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


def _sha256(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error
