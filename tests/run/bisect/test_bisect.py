"""Protects the search: it finds the first bad commit, says what it cannot know, and leaves the
user's repository alone. git is real."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import HarnessError, UsageError
from harness.core.verdict import Verdict
from harness.run.bisect import Bisection, Mark, commit_of
from tests.system.repository import Repository, make_repository

from .conftest import Search as Searches
from .histories import linear


def subject_of(bisection: Bisection) -> str:
    assert bisection.first is not None
    return bisection.first.commit.subject


@pytest.mark.parametrize("first", [1, 4, 11])
def test_the_first_bad_commit_wherever_it_is(searched: Searches, first: int) -> None:
    there = searched(*["PASS"] * first, *["MISMATCH outputs_differ"] * (12 - first))
    bisection = there.run("c0", "HEAD")
    assert subject_of(bisection) == f"c{first}"
    assert bisection.first is not None
    assert bisection.first.record.cause is not None
    assert bisection.first.record.cause.kind == "outputs_differ"
    assert len(bisection.trials) <= 2 + 4  # the two ends, and log2 of eleven
    assert len({trial.commit.sha for trial in bisection.trials}) == len(bisection.trials)
    assert [trial.mark for trial in bisection.trials[:2]] == [Mark.BAD, Mark.GOOD]
    assert (there.worktree.folder / "verdict").read_text() == "MISMATCH outputs_differ\n"
    assert there.repository.git("-C", str(there.worktree.folder), "log", "-1", "--format=%s") == (
        f"c{first}"
    )


@pytest.mark.parametrize("first", [1, 4, 11])
def test_the_commit_that_fixed_it(searched: Searches, first: int) -> None:
    there = searched(*["MISMATCH outputs_differ"] * first, *["PASS"] * (12 - first))
    found = there.run("HEAD", "c0", fixed=True)
    assert subject_of(found) == f"c{first}"
    assert [trial.mark for trial in found.trials[:2]] == [Mark.GOOD, Mark.BAD]
    assert (there.worktree.folder / "verdict").read_text() == "PASS\n"
    assert found.summary()["first_good"]["commit"]["subject"] == f"c{first}"


def test_a_fix_that_skipped_revisions_hide(searched: Searches) -> None:
    there = searched("FAULT", "FAULT", "INFRA", "PASS", "PASS")
    found = there.run("HEAD", "c0", fixed=True)
    assert found.summary()["first_good"] is None
    assert [c.subject for c in found.candidates] == ["c3", "c2"]


def test_a_fix_needs_a_bad_end_that_is_older(searched: Searches) -> None:
    there = searched("PASS", "PASS", "FAULT")
    with pytest.raises(UsageError, match=r"the bad revision .* passes; the good revision .* fails"):
        there.run("HEAD", "c0", fixed=True)


def test_it_says_how_far_it_is(searched: Searches) -> None:
    there = searched(*["PASS"] * 4, *["FAULT"] * 3)
    there.run("c0", "HEAD")
    assert any(line.startswith("Bisecting: ") and "left to test" in line for line in there.progress)
    assert any(" fails: FAULT" in line for line in there.progress)


@pytest.mark.parametrize("undecided", ["BUILD_ERROR", "LINK_ERROR", "EXPORT_ERROR"])
def test_a_build_that_fails_is_skipped_unless_it_counts(searched: Searches, undecided: str) -> None:
    there = searched("PASS", "PASS", undecided, "MISMATCH", "MISMATCH")
    bisection = there.run("c0", "HEAD")
    assert bisection.first is None
    assert [c.subject for c in bisection.candidates] == ["c3", "c2"]
    assert {t.commit.subject: t.mark for t in bisection.trials}["c2"] is Mark.SKIP
    assert subject_of(there.run("c0", "HEAD", Verdict[undecided])) == "c2"


@pytest.mark.parametrize("verdict", ["INFRA", "NO_VERDICT", "SKIPPED"])
def test_what_says_nothing_about_the_product_is_skipped(searched: Searches, verdict: str) -> None:
    there = searched("PASS", "PASS", verdict, "PASS", "OVER_BUDGET", "HANG", "HANG")
    assert subject_of(there.run("c0", "HEAD")) == "c4"


def test_a_defect_of_the_step_is_not_a_verdict(searched: Searches) -> None:
    there = searched("PASS", "PASS", "crash", "PASS", "MISMATCH")
    with pytest.raises(ValueError, match="a defect of ours"):
        there.run("c0", "HEAD")


def test_both_ends_are_looked_at_and_the_one_that_works_is_named(searched: Searches) -> None:
    there = searched("BUILD_ERROR revision_unsupported", "PASS", "FAULT")
    with pytest.raises(UsageError) as caught:
        there.run("c0", "c2")
    good, bad = (commit_of(there.repository.folder, name).sha[:10] for name in ("c0", "c2"))
    assert caught.value.message == (
        f"the good revision {good} c0 cannot be judged: BUILD_ERROR revision_unsupported: what "
        f"BUILD_ERROR is about; the bad revision {bad} c2 fails: FAULT planted: what FAULT is about"
    )


@pytest.mark.parametrize(
    ("verdicts", "end", "message", "hint", "code"),
    [
        (
            ("FAULT hard_fault", "FAULT"),
            Mark.GOOD,
            "c0 fails: FAULT hard_fault: what FAULT is",
            "--good names an older revision that passes",
            2,
        ),
        (("PASS", "PASS"), Mark.BAD, "c1 passes", "what is not committed is in neither", 2),
        (("PASS", "LINK_ERROR"), Mark.BAD, "cannot be judged: LINK_ERROR", "--count-bad", 2),
        (("BUILD_ERROR", "FAULT"), Mark.GOOD, "cannot be judged", "--good names", 2),
        (("PASS", "INFRA tool_missing"), Mark.BAD, "INFRA tool_missing", "--good names", 3),
    ],
)
def test_ends_that_are_not_what_they_should_be(
    searched: Searches, verdicts: tuple[str, str], end: Mark, message: str, hint: str, code: int
) -> None:
    with pytest.raises(HarnessError, match=f"the {end} revision") as caught:
        searched(*verdicts).run("c0", "c1")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.exit_code == code


@pytest.mark.parametrize(("good", "bad"), [("c1", "c1"), ("c2", "c0")])
def test_ends_in_the_wrong_order(searched: Searches, good: str, bad: str) -> None:
    there = searched("PASS", "MISMATCH", "MISMATCH")
    with pytest.raises(UsageError, match="no search between") as caught:
        there.run(good, bad)
    assert "older revision" in (caught.value.hint or "")
    assert there.progress == []


def branches(tmp_path: Path, base: str, good: str, bad: str) -> Repository:
    """Two branches, "release" and "main", of a commit."""
    made = make_repository(tmp_path / "b")
    made.commit("root", verdict="PASS")
    made.commit("base", verdict=base)
    made.git("checkout", "-q", "-b", "release")
    made.commit("release", verdict=good)
    made.git("checkout", "-q", "main")
    made.commit("main 1", other="x")
    made.commit("main 2", verdict=bad)
    return made


def test_a_good_revision_of_another_branch(searched: Searches, tmp_path: Path) -> None:
    there = searched(repository=branches(tmp_path, "PASS", "PASS", "MISMATCH"))
    bisection = there.run("release", "main")
    assert subject_of(bisection) == "main 2"
    assert "base" in [trial.commit.subject for trial in bisection.trials]


def test_a_bug_that_was_fixed_on_another_branch(searched: Searches, tmp_path: Path) -> None:
    there = searched(repository=branches(tmp_path, "MISMATCH", "PASS", "MISMATCH"))
    with pytest.raises(UsageError, match="the bug has been fixed between") as caught:
        there.run("release", "main")
    assert there.repository.git("rev-parse", "main~2") in caught.value.message


def test_a_base_that_cannot_be_judged_is_skipped(searched: Searches, tmp_path: Path) -> None:
    there = searched(repository=branches(tmp_path, "INFRA", "PASS", "MISMATCH"))
    bisection = there.run("release", "main")
    assert bisection.first is None
    assert [commit.subject for commit in bisection.candidates] == ["main 2", "main 1"]


def test_the_users_repository_and_bisect_are_as_before(searched: Searches) -> None:
    there = searched(*["PASS"] * 5, *["MISMATCH"] * 4)
    hook = there.repository.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch $(git rev-parse --git-common-dir)/hooked\n")
    hook.chmod(0o755)
    there.repository.git("bisect", "start", "c8", "c0")
    (there.repository.folder / ".git" / "hooked").unlink(missing_ok=True)
    before = there.repository.state()
    assert there.run("c0", "c8").first is not None
    assert there.run("c0", "c8").first is not None
    assert there.repository.state() == before


def test_the_summary_is_data(searched: Searches) -> None:
    fields = searched("PASS", "MISMATCH outputs_differ").run("c0", "c1").summary()
    assert fields["first_bad"]["commit"]["subject"] == "c1"
    assert fields["first_bad"]["verdict"] == "MISMATCH"
    assert fields["first_bad"]["cause"]["kind"] == "outputs_differ"
    assert [trial["mark"] for trial in fields["trials"]] == ["bad", "good"]
    assert [commit["subject"] for commit in fields["candidates"]] == ["c1"]


def test_a_commit_has_its_facts(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", "PASS", "MISMATCH")
    commit = commit_of(made.folder, "c1")
    assert commit == commit_of(made.folder, "HEAD")
    assert (commit.subject, commit.author) == ("c1", "A, 2026-01-02")


@pytest.mark.parametrize("name", ["v9", "", "--all", "HEAD~9", "main:verdict", "a b"])
def test_a_revision_that_does_not_exist(tmp_path: Path, name: str) -> None:
    made = linear(tmp_path / "r", "PASS")
    with pytest.raises(UsageError, match="has no revision") as caught:
        commit_of(made.folder, name)
    assert "git fetch --unshallow" in (caught.value.hint or "")
