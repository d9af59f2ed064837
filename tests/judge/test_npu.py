"""What the model of an NPU adds to a verdict: its own reason, and never a PASS."""

from __future__ import annotations

import pytest

from harness.judge.npu import with_npu, with_place
from harness.judge.run import Cause, Verdict
from harness.simulate.transcript import NpuStop, NpuUse

PASSED = Verdict("PASS", None, ("a note",))
FAILED = Verdict("FAULT", Cause("npu_error", "Failed to invoke inference.", 12))


def test_without_a_model_only_the_differences_are_noted() -> None:
    assert with_npu(PASSED, None) == PASSED
    assert with_npu(PASSED, None, ("another CPU",)).notes == ("a note", "another CPU")


@pytest.mark.parametrize(
    ("result", "name", "kind"),
    [
        ("unsupported", "NO_VERDICT", "npu_unsupported"),
        ("broken", "INFRA", "npu_model"),
        ("fault", "FAULT", "npu_fault"),
        ("refused", "FAULT", "npu_refused"),
    ],
)
@pytest.mark.parametrize("before", [PASSED, FAILED], ids=["passed", "failed"])
def test_a_stop_is_the_verdict_with_its_facts(
    before: Verdict, result: str, name: str, kind: str
) -> None:
    """Also when the run seemed to pass: a guest may ignore what its NPU says."""
    verdict = with_npu(before, NpuUse(2, NpuStop(2, result, "OFM_SCALE = 7", 0x24)))
    assert verdict.name == name
    assert verdict.cause is not None
    assert verdict.cause.kind == kind
    assert verdict.cause.text == "OFM_SCALE = 7 (job 2 of the NPU)"
    assert verdict.cause.facts is not None
    assert verdict.cause.facts["offset"] == 0x24
    assert verdict.cause.line == (None if before is PASSED else 12)


def test_a_pass_without_work_for_the_npu_is_noted() -> None:
    assert "given no work" in with_npu(PASSED, NpuUse(0)).notes[-1]
    assert with_npu(PASSED, NpuUse(3)).notes == ("a note",)
    assert with_npu(FAILED, NpuUse(0)).notes == ()


def test_a_mismatch_names_its_place() -> None:
    mismatch = Verdict("MISMATCH", Cause("outputs_differ", "differs by 3 LSB", None, {"lsb": 3}))
    placed = with_place(mismatch, "delegate 1, CONV2D")
    assert placed.cause is not None
    assert placed.cause.text == "differs by 3 LSB; first: delegate 1, CONV2D"
    assert placed.cause.facts == {"lsb": 3, "mismatch_at": "delegate 1, CONV2D"}
    assert with_place(mismatch, None) == mismatch
    assert with_place(FAILED, "delegate 1") == FAILED
