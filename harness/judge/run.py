"""From what was observed to a verdict. Pure: the same facts give the same verdict offline.

The verdict starts at NO_VERDICT, and PASS is the last thing considered: it needs a clean
exit, the end marker, the firmware that was asked for, outputs written by this run that match
on every input set, budgets that hold, and no failure on any line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.judge.compare import TensorDiff
from harness.judge.ending import execution_cause, limit_notes
from harness.judge.verdict import Cause, Ending, Expectation, Finding, Outputs, Verdict
from harness.observe import Observation

__all__ = [
    "Cause",
    "Ending",
    "Expectation",
    "Outputs",
    "Verdict",
    "execution_cause",
    "judge",
    "worst",
]


def judge(
    observation: Observation,
    ending: Ending,
    outputs: Outputs,
    metrics: Mapping[str, int],
    expectation: Expectation,
) -> Verdict:
    """The verdict and its first cause; ``metrics`` are the figures budgets are held against."""
    notes = _notes(expectation) + limit_notes(observation)
    cause = (
        execution_cause(observation, ending, expectation.build_id)
        or _incomplete(outputs)
        or _mismatch(outputs, expectation)
        or _program_changed(expectation)
        or _over_budget(metrics, expectation)
    )
    if cause is None:
        return Verdict("PASS", None, notes)
    return Verdict(cause[0], cause[1], notes)


def _incomplete(outputs: Outputs) -> Finding:
    if outputs.missing:
        return "NO_VERDICT", Cause("output_missing", f"not written: {', '.join(outputs.missing)}")
    if outputs.misshapen:
        return "MISMATCH", Cause("output_size", "; ".join(outputs.misshapen))
    if not outputs.diffs:
        return "NO_VERDICT", Cause("nothing_compared", "no output was compared with anything")
    return None


def _mismatch(outputs: Outputs, expectation: Expectation) -> Finding:
    bad = [d for d in outputs.diffs if not d.within(expectation.tolerance_lsb)]
    if bad:
        worst = max(bad, key=lambda d: d.worst_abs)
        return "MISMATCH", Cause("outputs_differ", worst.describe(), None, _facts(worst))
    reference = expectation.reference
    same_program = reference is not None and reference.pte_sha256 == expectation.pte_sha256
    if reference is not None and same_program and reference.outputs != outputs.sha256:
        return "MISMATCH", Cause(
            "reference_outputs", "the outputs are not those of the accepted reference run"
        )
    return None


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
    return "NO_VERDICT", Cause(
        "program_changed",
        "the outputs match, but the .pte is not the one the expected outputs were computed for",
    )


def _over_budget(metrics: Mapping[str, int], expectation: Expectation) -> Finding:
    limits = expectation.limits
    missing = sorted(limits.keys() - metrics.keys())
    if missing:
        return "NO_VERDICT", Cause("not_measured", f"no figure for {', '.join(missing)}")
    over = [name for name, most in limits.items() if metrics[name] > most]
    if over:
        text = "; ".join(f"{n} is {metrics[n]} bytes, at most {limits[n]} fit" for n in over)
        return "OVER_BUDGET", Cause("over_limit", text, None, {"metrics": over})
    if expectation.reference is None:
        return None
    missing = expectation.reference.unmeasured(metrics, expectation.toolchain)
    if missing:
        return "NO_VERDICT", Cause("not_measured", f"no figure for {', '.join(missing)}")
    grown = expectation.reference.growth(metrics, expectation.toolchain)
    if grown:
        text = "; ".join(g.describe() for g in grown)
        return "OVER_BUDGET", Cause("grown", text, None, {"metrics": [g.metric for g in grown]})
    return None


def _notes(expectation: Expectation) -> tuple[str, ...]:
    notes = []
    reference = expectation.reference
    if reference is None:
        notes.append("no reference run accepted yet")
    else:
        if expectation.toolchain not in reference.firmware:
            notes.append(f"no accepted footprint for toolchain {expectation.toolchain}")
        if reference.pte_sha256 != expectation.pte_sha256:
            notes.append("the .pte differs from the accepted one")
    if not expectation.pte_unchanged:
        notes.append("the .pte is not the one that was exported: its sha256 differs")
    return tuple(notes)


def worst(diffs: Sequence[TensorDiff]) -> float | None:
    """The largest difference in LSB over all outputs; None when one has no scale."""
    values = [d.worst_lsb for d in diffs]
    return None if any(v is None for v in values) else max((v or 0.0 for v in values), default=0.0)
