"""What a person reads of a bisection."""

from __future__ import annotations

import io

from rich.console import Console

from harness.report.terminal import print_bisection
from harness.run.bisect import Bisection, BisectTrial, Commit, Mark
from tests.run.bisect.histories import record_of

COMMITS = [
    Commit(f"{n:010x}{0:030x}", "A. Author, 2026-01-02", f"[arm] change {n}") for n in range(30)
]
GOOD = BisectTrial(COMMITS[0], Mark.GOOD, record_of("PASS"))
BAD = BisectTrial(COMMITS[2], Mark.BAD, record_of("MISMATCH outputs_differ"))
SKIPPED = BisectTrial(COMMITS[1], Mark.SKIP, record_of("BUILD_ERROR build"))


def shown(bisection: Bisection) -> str:
    out = io.StringIO()
    print_bisection(Console(file=out, width=60), bisection)
    return out.getvalue()


def test_the_first_bad_commit_with_all_one_needs() -> None:
    """Square brackets are no markup."""
    said = shown(Bisection((BAD, GOOD), (COMMITS[2],)))
    assert "bad   0000000002 [arm] change 2  FAIL MISMATCH outputs_differ\n" in said
    assert "good  0000000000 [arm] change 0  PASS\n" in said
    assert "2 revisions run: 1 good, 1 bad\n" in said
    assert f"{COMMITS[2].sha} is the first bad commit\n" in said
    assert "  A. Author, 2026-01-02\n  [arm] change 2\n" in said
    assert "  what MISMATCH is about\n" in said


def test_candidates_when_it_is_not_decided() -> None:
    few = shown(Bisection((BAD, SKIPPED), (COMMITS[2], COMMITS[1])))
    assert "not decided: " in few
    assert "one of these 2:\n  0000000002 [arm] change 2\n  0000000001 [arm] change 1\n" in few
    assert "first bad commit\n" not in few
    many = shown(Bisection((BAD,), tuple(COMMITS[1:])))
    assert "  ... and 9 more (--json lists all)\n" in many
