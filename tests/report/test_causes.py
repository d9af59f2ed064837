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


_VERBS = [
    "ask",
    "avoid",
    "build",
    "change",
    "check",
    "choose",
    "compare",
    "correct",
    "do",
    "export",
    "find",
    "fix",
    "flash",
    "follow",
    "free",
    "give",
    "install",
    "keep",
    "let",
    "link",
    "look",
    "make",
    "plug",
    "put",
    "quantise",
    "read",
    "report",
    "run",
    "see",
    "set",
    "start",
    "switch",
    "take",
    "try",
    "use",
]


def test_what_to_do_begins_with_a_verb() -> None:
    """A reader can follow it where it stands: it refers to no other row."""
    advised = {**{kind: each.do for kind, each in causes().items()}, **{v: v.do for v in Verdict}}
    assert {kind for kind, do in advised.items() if do.split()[0] not in _VERBS} == {Verdict.PASS}
    assert not [kind for kind, do in advised.items() if "as above" in do]
