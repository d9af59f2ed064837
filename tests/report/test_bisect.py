"""What a person reads of a bisection."""

from __future__ import annotations

import io

from rich.console import Console

from harness.report.terminal import print_bisection
from harness.run.bisect import Bisection, Commit, Mark, Trial
from tests.run.bisect.histories import record_of

COMMITS = [
    Commit(f"{n:040x}", f"{n:07x}", "2026-01-02T12:00:00+01:00", "A. Author", f"[arm] change {n}")
    for n in range(30)
]
GOOD = Trial(COMMITS[0], Mark.GOOD, record_of("PASS"))
BAD = Trial(COMMITS[2], Mark.BAD, record_of("MISMATCH outputs_differ"))
SKIPPED = Trial(COMMITS[1], Mark.SKIP, record_of("BUILD_ERROR build"))


def shown(bisection: Bisection) -> str:
    out = io.StringIO()
    print_bisection(Console(file=out, width=60), bisection)
    return out.getvalue()


def test_the_first_bad_commit_with_all_one_needs() -> None:
    """Square brackets are no markup, and a command can be copied."""
    command = "hil run t m --executorch '/my worktree'"
    said = shown(Bisection((BAD, GOOD), BAD, (), ("a note",), command))
    assert "bad   0000002 [arm] change 2  FAIL MISMATCH outputs_differ\n" in said
    assert "good  0000000 [arm] change 0  PASS\n" in said
    assert "2 revisions run: 1 good, 1 bad\n" in said
    assert f"{COMMITS[2].sha} is the first bad commit\n" in said
    assert "  2026-01-02T12:00:00+01:00  A. Author\n  [arm] change 2\n" in said
    assert "  what MISMATCH is about\n" in said
    assert "  reproduce: hil run t m --executorch '/my worktree'\n" in said
    assert said.endswith("note: a note\n")


def test_candidates_when_it_is_not_decided() -> None:
    few = shown(Bisection((BAD, SKIPPED), None, (COMMITS[2], COMMITS[1])))
    assert "not decided: " in few
    assert "one of these 2:\n  0000002 [arm] change 2\n  0000001 [arm] change 1\n" in few
    assert "first bad commit\n" not in few
    many = shown(Bisection((BAD,), None, tuple(COMMITS[1:])))
    assert "  ... and 9 more (--json lists all)\n" in many
