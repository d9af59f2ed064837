"""From what was observed to a verdict. Pure: the same evidence gives the same verdict offline.

PASS is the last thing considered: it needs a clean exit, the end marker, the firmware that was
asked for, outputs written by this run that match on every input set, budgets that hold, no
failure on any line, an NPU that did all it was given, and a console that was read to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from harness.config.case import OR_ALLOW
from harness.config.figures import figure
from harness.core.judgement import Blame, Cause, Finding, Judgement, Reason
from harness.core.verdict import Verdict
from harness.judge.budget_check import FigureState, accuracy_notes, check, check_accuracy
from harness.judge.cost import NPU_FIGURE, check_delegation, delegation_note, npu_growth_sentences
from harness.judge.ending import console_cut, execution_cause, limit_notes
from harness.judge.evidence import ByDesign, Evidence, Expectation, Outputs, TensorDiff
from harness.judge.reference import Reference
from harness.log.events import Kind
from harness.sim.simulator import NpuResult, NpuStop
from harness.sim.transcript import Ending


def judge(evidence: Evidence, expectation: Expectation) -> Judgement:
    """Return the verdict, its first cause, and notes."""
    finding = (
        execution_cause(evidence.observation, evidence.ending, expectation.build_id)
        or _rewritten(evidence.ending)
        or _incomplete(evidence.outputs)
        or _mismatch(evidence.outputs, expectation)
        or _known_defect(expectation)
        or _program_changed(expectation)
        or console_cut(evidence.ending, evidence.observation, evidence.console_bytes)
        or _inaccurate(evidence, expectation)
        or _undelegated(evidence, expectation)
        or _reference_program(evidence.outputs, expectation)
        or _over_budget(evidence, expectation)
        or _not_accepted(expectation)
    )
    if evidence.npu is not None and evidence.npu.stop is not None:
        finding = _npu_stopped(evidence.npu.stop, finding)
    explained = _explained(finding, evidence.mismatch_at, evidence.blame)
    return Judgement.of(explained, _notes(evidence, expectation, finding))


# What the NPU's model does not know proves nothing about the program; a model that failed proves
# nothing at all.
_NPU_ENDS = {
    NpuResult.UNSUPPORTED: (Verdict.NO_VERDICT, Reason.NPU_UNSUPPORTED),
    NpuResult.BROKEN: (Verdict.INFRA, Reason.NPU_MODEL),
    NpuResult.FAULT: (Verdict.FAULT, Reason.NPU_FAULT),
    NpuResult.REFUSED: (Verdict.FAULT, Reason.NPU_REFUSED),
}


def _npu_stopped(stop: NpuStop, finding: Finding) -> Finding:
    """Put the NPU model's reason for a stop before the guest's; the console line stays."""
    verdict, reason = _NPU_ENDS[stop.result]
    line = None if finding is None else finding[1].line
    return verdict, Cause(reason, f"{stop.message} (job {stop.job} of the NPU)", line, asdict(stop))


def _explained(finding: Finding, place: str | None, blame: Blame | None) -> Finding:
    """Add to a MISMATCH where NPU and TOSA first disagree, and whose fault it is."""
    if finding is None:
        return None
    verdict, cause = finding
    if place is not None and verdict is Verdict.MISMATCH:
        cause = _with(cause, f"first: {place}", {"mismatch_at": place})
    if blame is not None and may_be_blamed(finding):
        cause = _with(cause, f"whose fault: {blame.text}", blame.facts)
        cause = replace(cause, kind=blame.reason or cause.kind)
    return verdict, cause


def _with(cause: Cause, text: str, facts: Mapping[str, Any]) -> Cause:
    return replace(cause, text=f"{cause.text}; {text}", facts={**(cause.facts or {}), **facts})


def may_be_blamed(finding: Finding) -> bool:
    """Whether a wrong NPU stream may be the reason. A runner may also refuse one."""
    if finding is None:
        return False
    return finding[0] is Verdict.MISMATCH or finding[1].kind in _OF_A_STREAM


_OF_A_STREAM = (Reason.NPU_FAULT, Reason.NPU_UNSUPPORTED, Kind.RUNNER_ERROR.value)


_MOST_NAMES = 8


def _rewritten(ending: Ending) -> Finding:
    """Which program ran, and on which inputs, is then unknown."""
    if not ending.rewritten:
        return None
    names = ", ".join(ending.rewritten[:_MOST_NAMES])
    text = f"the guest changed or removed what it was given to read: {names}"
    return Verdict.NO_VERDICT, Cause(Reason.FILES_REWRITTEN, text)


def _incomplete(outputs: Outputs) -> Finding:
    if outputs.missing:
        names = ", ".join(outputs.missing)
        return Verdict.NO_VERDICT, Cause(Reason.OUTPUT_MISSING, f"not written: {names}")
    if outputs.misshapen:
        return Verdict.MISMATCH, Cause(Reason.OUTPUT_SIZE, "; ".join(outputs.misshapen))
    if outputs.undeclared:
        names = ", ".join(outputs.undeclared[:_MOST_NAMES])
        text = f"written, and no output of the program: {names}"
        return Verdict.MISMATCH, Cause(Reason.OUTPUT_UNDECLARED, text)
    if not outputs.diffs:
        text = "no output was compared with anything"
        return Verdict.NO_VERDICT, Cause(Reason.NOTHING_COMPARED, text)
    return None


def _mismatch(outputs: Outputs, expectation: Expectation) -> Finding:
    truth = _of_program(expectation.truth, expectation)
    if truth is not None:
        if outputs.sha256 == truth.outputs:
            return None
        text = "the outputs are not those of the run that is the case's truth"
        return Verdict.MISMATCH, Cause(Reason.TRUTH_OUTPUTS, text)
    bad = [d for d in outputs.diffs if not d.within(expectation.tolerance_lsb)]
    if bad:
        worst = max(bad, key=lambda d: d.worst_abs)
        return Verdict.MISMATCH, Cause(Reason.OUTPUTS_DIFFER, worst.describe(), None, _facts(worst))
    reference = _of_program(expectation.reference, expectation)
    if reference is not None and reference.outputs != outputs.sha256:
        text = "the outputs are not those of the accepted reference run"
        return Verdict.MISMATCH, Cause(Reason.REFERENCE_OUTPUTS, text)
    return None


def _known_defect(expectation: Expectation) -> Finding:
    """Note that ExecuTorch's own kernels would be wrong, or that nobody knows."""
    if why := expectation.defects_unread:
        text = f"the outputs are right, but known defects of ExecuTorch were not looked for: {why}"
        return Verdict.NO_VERDICT, Cause(Reason.DEFECTS_UNREAD, text)
    if not expectation.defects:
        return None
    text = "the outputs are right, but not those that ExecuTorch itself would give"
    return Verdict.MISMATCH, Cause(Reason.KNOWN_DEFECT, text)


def _of_program(accepted: Reference | None, expectation: Expectation) -> Reference | None:
    """Return the accepted run, if it was of exactly this program."""
    same = accepted is not None and accepted.pte_sha256 == expectation.pte_sha256
    return accepted if same else None


def _facts(worst: TensorDiff) -> dict[str, Any]:
    return {
        "output": worst.output,
        "input_set": worst.input_set,
        "index": list(worst.worst_index or ()),
        "lsb": worst.worst_lsb,
        "got": worst.got,
        "expected": worst.expected,
    }


def _program_changed(expectation: Expectation) -> Finding:
    if expectation.pte_unchanged:
        return None
    text = "the outputs match, but the .pte is not the one the expected outputs were computed for"
    return Verdict.NO_VERDICT, Cause(Reason.PROGRAM_CHANGED, text)


def _reference_program(outputs: Outputs, expectation: Expectation) -> Finding:
    """Note that only the oracle was compared, and it comes from the same export."""
    other = expectation.other_program
    if other is None or not expectation.strict:
        return None
    difference = expectation.program_difference
    facts = None if difference is None else {"program_difference": asdict(difference)}
    text = _another_program(other, outputs, expectation)
    return Verdict.MISMATCH, Cause(Reason.REFERENCE_PROGRAM, text, None, facts)


def _another_program(accepted: Reference, outputs: Outputs, expectation: Expectation) -> str:
    same = "the same outputs" if outputs.sha256 == accepted.outputs else "other outputs"
    return (
        f"the program is not that of the accepted run ({accepted.pte_sha256[:12]}, this one is "
        f"{expectation.pte_sha256[:12]}), and it gives {same}; what changed: "
        f"{expectation.program_difference or 'not known'}"
    )


def _over_budget(evidence: Evidence, expectation: Expectation) -> Finding:
    reference, metrics = expectation.reference, evidence.metrics
    silent = _not_reported(metrics, expectation)
    every = check(("run",), metrics, expectation.accepted, expectation.budgets)
    checked = [f for f in every if f.figure not in silent]
    missing, over, grown = (
        [f for f in checked if f.state is state]
        for state in (FigureState.NOT_MEASURED, FigureState.OVER_LIMIT, FigureState.GROWN)
    )
    if missing and (not over or any(f.limit is not None for f in missing)):
        names = ", ".join(f.figure for f in missing)
        return Verdict.NO_VERDICT, Cause(Reason.NOT_MEASURED, f"no figure for {names}")
    if over or grown:
        reason = Reason.OVER_LIMIT if over else Reason.GROWN
        failed = over or sorted(grown, key=lambda f: -f.growth)
        facts: dict[str, Any] = {"metrics": [f.figure for f in failed]}
        if any(f.figure == NPU_FIGURE for f in failed):
            before = None if reference is None else reference.npu_cost
            facts["npu"] = npu_growth_sentences(before, evidence.npu_cost)
        text = "; ".join([*(f.describe() for f in failed), *facts.get("npu", ())])
        return Verdict.OVER_BUDGET, Cause(reason, text, None, facts)
    return None


def _inaccurate(evidence: Evidence, expectation: Expectation) -> Finding:
    """Comes before `reference_program`, because it says what another program lost."""
    reference = expectation.reference
    accepted = () if reference is None else reference.accuracy
    found = check_accuracy(evidence.accuracy, accepted, expectation.budgets)
    if not found:
        return None
    text = "; ".join(each.describe() for each in found[:_MOST_NAMES])
    facts = {"accuracy": [asdict(each) for each in found]}
    return Verdict.OVER_BUDGET, Cause(Reason.ACCURACY, text, None, facts)


def _undelegated(evidence: Evidence, expectation: Expectation) -> Finding:
    found = check_delegation(evidence.delegation, expectation.budgets)
    if found is None:
        return None
    facts = {"delegation": asdict(found)}
    return Verdict.OVER_BUDGET, Cause(Reason.NOT_DELEGATED, found.describe(), None, facts)


def _not_accepted(expectation: Expectation) -> Finding:
    known = (expectation.reference, expectation.truth)
    if not expectation.accept_command or any(r is not None and r.pte_sha256 for r in known):
        return None
    text = (
        "no run of the case was accepted, so only the oracle confirms its outputs; accept it "
        f"with: {expectation.accept_command}; {OR_ALLOW}"
    )
    return Verdict.NO_VERDICT, Cause(Reason.NOT_ACCEPTED, text)


def _not_reported(metrics: Mapping[str, int], expectation: Expectation) -> tuple[str, ...]:
    """Return the limits of figures that this firmware does not report and need not.

    Only the bundled runner prints them, or the figure is the bundled runner's own. A figure that
    was accepted once must be reported."""
    if expectation.prints_all_figures:
        return ()
    return tuple(
        name
        for name in sorted(expectation.budgets.limits.keys() - {*metrics, *expectation.accepted})
        if figure(name).stages == ("run",) or figure(name).bundled_only
    )


def _notes(evidence: Evidence, expectation: Expectation, finding: Finding) -> tuple[str, ...]:
    notes = accuracy_notes(evidence.accuracy, evidence.witness, expectation.budgets)
    if evidence.delegation is not None:
        note = delegation_note(evidence.delegation, evidence.observation.first_ticks)
        notes += [note] if note else []
    notes += [*_expectation_notes(expectation), *limit_notes(evidence.observation)]
    other = expectation.other_program
    if other is not None and (finding is None or finding[1].kind != Reason.REFERENCE_PROGRAM):
        text = _another_program(other, evidence.outputs, expectation)
        notes.insert(0, f"the recorded outputs were not compared: {text}")
    silent = [n for n in _not_reported(evidence.metrics, expectation) if not figure(n).bundled_only]
    if silent:
        notes.append(f"limits not checked, the runner does not report them: {', '.join(silent)}")
    notes += evidence.differences
    if evidence.outputs.by_design is not None and finding is None:
        notes.append(_by_design(evidence.outputs.by_design))
    if evidence.npu is not None and evidence.npu.jobs == 0 and finding is None:
        notes.append("the NPU was given no work: nothing of the program runs on it")
    return tuple(notes)


def _by_design(outputs: ByDesign) -> str:
    """Describe a difference that is exactly a known one."""
    furthest = max(outputs.diffs, key=lambda diff: diff.worst_abs)
    return (
        f"differs by design ({', '.join(outputs.names)}): {furthest.describe()}; bit for bit what "
        "the other of ExecuTorch's two definitions gives, C++ and Python"
    )


def _expectation_notes(expectation: Expectation) -> list[str]:
    notes = []
    reference = expectation.reference
    if reference is None or not reference.pte_sha256:
        if not expectation.accept_command:  # else it is the verdict
            notes.append("no reference run accepted yet")
    elif expectation.toolchain not in reference.firmware:
        notes.append(f"no accepted footprint for toolchain {expectation.toolchain}")
    if expectation.truth is not None:
        notes.append(
            "the case has no truth for this .pte: the oracle's outputs were expected"
            if _of_program(expectation.truth, expectation) is None
            else "judged by an accepted run, the case's truth, not by the oracle"
        )
    for defect in expectation.accepted_defects:
        notes.append(f"accepted, known defect `{defect.name}` of ExecuTorch: {defect.place}")
    if not expectation.pte_unchanged:
        notes.append("the .pte is not the one that was exported: its sha256 differs")
    return notes


def worst_lsb(diffs: Sequence[TensorDiff]) -> float | None:
    """Return the largest difference in LSB over all outputs; None if one has no scale."""
    values = [d.worst_lsb for d in diffs]
    return None if any(v is None for v in values) else max((v or 0.0 for v in values), default=0.0)
