"""Protects the explanations: every verdict, and every cause that a run can end with, has one."""

from __future__ import annotations

import pytest

from harness.core.judgement import Reason
from harness.core.verdict import Verdict
from harness.log.events import Kind, StopReason
from harness.report.terminal import advice, causes
from harness.system.process import Stop

_NO_CAUSE = {Stop.EXITED, Stop.FAULT, StopReason.STOPPED}  # the cause is what they came of


@pytest.mark.parametrize("words", [Kind, Reason, Stop, StopReason])
def test_every_cause(words: type) -> None:
    for word in words:  # type: ignore[attr-defined]
        assert word in _NO_CAUSE or str(word) in causes(), word


def test_nothing_is_explained_that_is_none() -> None:
    """A word that was renamed must not stay here under its old name."""
    from harness.core.errors import HarnessError
    from tests.report.kinds import every_kind

    known = {str(word) for words in (Kind, Reason, Stop, StopReason) for word in words}
    assert set(causes()) <= known | every_kind(HarnessError)


def test_a_cause_of_its_own_has_its_verdicts_advice() -> None:
    assert advice(Verdict.INFRA, "worktree_busy") == (Verdict.INFRA.meaning, Verdict.INFRA.do)
    assert advice(Verdict.PASS, None).do == "nothing"
