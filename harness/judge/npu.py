"""What a model of an NPU beside the simulator adds to a verdict. Pure, like judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from harness.judge.run import Cause, Verdict
from harness.simulate.transcript import NpuStop, NpuUse

# How a run ended by the model is called: what the model does not know proves nothing about the
# program, and a model that failed proves nothing about anything.
_VERDICTS = {
    "unsupported": ("NO_VERDICT", "npu_unsupported"),
    "broken": ("INFRA", "npu_model"),
    "fault": ("FAULT", "npu_fault"),
    "refused": ("FAULT", "npu_refused"),
}


def with_npu(verdict: Verdict, npu: NpuUse | None, differences: Sequence[str] = ()) -> Verdict:
    """The verdict, with the model's own reason where it stopped; ``differences`` are notes."""
    notes = (*verdict.notes, *differences)
    if npu is None:
        return replace(verdict, notes=notes)
    if npu.jobs == 0 and verdict.passed:
        notes = (*notes, "the NPU was given no work: nothing of the program runs on it")
    if npu.stop is None:
        return replace(verdict, notes=notes)
    return _stopped(verdict, npu.stop, notes)


def _stopped(verdict: Verdict, stop: NpuStop, notes: tuple[str, ...]) -> Verdict:
    name, kind = _VERDICTS[stop.result]
    line = None if verdict.cause is None else verdict.cause.line
    text = f"{stop.message} (job {stop.job} of the NPU)"
    return Verdict(name, Cause(kind, text, line, asdict(stop)), notes)


def with_place(verdict: Verdict, mismatch_at: str | None) -> Verdict:
    """A MISMATCH names where NPU and TOSA first disagree."""
    cause = verdict.cause
    if mismatch_at is None or verdict.name != "MISMATCH" or cause is None:
        return verdict
    text = f"{cause.text}; first: {mismatch_at}"
    facts = {**(cause.facts or {}), "mismatch_at": mismatch_at}
    return replace(verdict, cause=replace(cause, text=text, facts=facts))
