"""Protects the search: it finds the first bad commit, says what it cannot know, writes nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.bisect.history import Commit
from harness.bisect.search import (
    Interrupted,
    Mark,
    MendedSince,
    Search,
    WrongEnd,
    WrongOrder,
    spread,
)
from harness.errors.verdict import ExitCode, Verdict
from harness.run.record import RunRecord
from tests.system.repository import Repository, make_repository

from .conftest import Search as Searches
from .histories import Searched, record_of


@pytest.mark.parametrize("first", range(1, 12))
def test_the_first_bad_commit_wherever_it_is(searched: Searches, first: int) -> None:
    there = searched(*["PASS"] * first, *["MISMATCH outputs_differ"] * (12 - first))
    found = there.run("c0", "HEAD")
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == f"c{first}"
    assert found.first_bad.record.cause == record_of("MISMATCH outputs_differ").cause
    assert found.exit_code is ExitCode.PASSED
    assert len(there.tried) <= 2 + 4  # the two ends, and log2 of eleven
    assert len(set(there.tried)) == len(there.tried)


def test_it_says_how_far_it_is(searched: Searches) -> None:
    there = searched(*["PASS"] * 4, *["FAULT"] * 3)
    there.run("c0", "HEAD")
    (first,) = (line for line in there.said if " revisions left " in line and " 5 " in line)
    assert first.startswith("bisect: 5 revisions left (about 3 steps): testing ")
    assert first.endswith(" c3")
    (last,) = (line for line in there.said if "(about 1 step)" in line)
    assert last.startswith("bisect: 1 revision left")
    assert any(line.endswith("is bad (FAULT)") for line in there.said)


@pytest.mark.parametrize("undecided", ["BUILD_ERROR", "LINK_ERROR", "EXPORT_ERROR"])
def test_a_build_that_fails_is_skipped_unless_asked(searched: Searches, undecided: str) -> None:
    there = searched("PASS", "PASS", undecided, "MISMATCH", "MISMATCH")
    found = there.run("c0", "HEAD")
    assert found.first_bad is None
    assert [c.subject for c in found.candidates] == ["c3", "c2"]
    assert found.exit_code is ExitCode.FAILED
    assert {t.commit.subject: t.mark for t in found.trials}["c2"] is Mark.SKIP
    counted = there.run("c0", "HEAD", Verdict[undecided])
    assert counted.first_bad is not None
    assert counted.first_bad.commit.subject == "c2"


@pytest.mark.parametrize("verdict", ["INFRA", "NO_VERDICT", "SKIPPED"])
def test_what_says_nothing_about_the_product_is_skipped(searched: Searches, verdict: str) -> None:
    there = searched("PASS", "PASS", verdict, "PASS", "OVER_BUDGET", "HANG", "HANG")
    found = there.run("c0", "HEAD")
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == "c4"
    assert found.first_bad.record.verdict is Verdict.OVER_BUDGET


def test_when_all_between_is_skipped_the_candidates_are_named(searched: Searches) -> None:
    there = searched("PASS", *["BUILD_ERROR"] * 5, "MISMATCH")
    found = there.run("c0", "HEAD")
    assert found.first_bad is None
    assert [c.subject for c in found.candidates] == ["c6", "c5", "c4", "c3", "c2", "c1"]
    assert sorted(there.tried) == ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]


def test_it_leaves_a_stretch_that_does_not_build_soon(searched: Searches) -> None:
    """22 in the middle do not build; the first bad one lies beyond them."""
    verdicts = ["PASS"] * 10 + ["BUILD_ERROR"] * 22 + ["PASS"] * 4 + ["MISMATCH"] * 6
    there = searched(*verdicts)
    found = there.run("c0", "HEAD")
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == "c36"
    assert sum(t.mark is Mark.SKIP for t in found.trials) <= 6


def test_spread() -> None:
    """The best one first; after skips elsewhere, and always one of those that there are."""
    ordered = [str(n) for n in range(40)]
    assert [spread(ordered, n) for n in range(4)] == ["0", "14", "5", "25"]
    assert {spread(["a"], n) for n in range(100)} == {"a"}


def test_random_histories(searched: Searches, tmp_path: Path) -> None:
    """Merges, skipped commits: what is found is bad, and everything it descends from is good;
    or the candidates hold it."""
    seed = 20261121
    print("seed", seed)
    rng = random.Random(seed)
    for number in range(6):
        made = make_repository(tmp_path / f"r{number}")
        made.commit("c0", verdict="PASS")
        made.git("tag", "good")
        planted = made.commit("base", verdict="PASS")
        tips = ["main"]
        when = rng.randrange(3, 12)
        for at in range(14):
            if rng.random() < 0.3:
                made.git("checkout", "-q", "-b", f"b{at}", rng.choice(tips))
                tips.append(f"b{at}")
            elif rng.random() < 0.3 and len(tips) > 1:
                side = tips.pop()
                made.git("checkout", "-q", "main")
                made.git("merge", "-q", "--no-ff", "-m", f"merge {at}", side)
            else:
                made.git("checkout", "-q", "main")
                skipped = rng.random() < 0.2
                (made.folder / ("broken" if skipped else f"f{at}")).write_text("x")
                made.commit(f"c{at}")
                if not skipped and (made.folder / "broken").exists():
                    made.git("rm", "-q", "broken")
                    made.commit(f"mended {at}")
            if at == when:
                made.git("checkout", "-q", "main")
                planted = made.commit("planted", planted="x")
        made.git("checkout", "-q", "main")
        if (made.folder / "broken").exists():
            made.git("rm", "-q", "broken")
            made.commit("mended")
        there = searched(repository=made)

        def step(commit: Commit, there: Searched = there) -> RunRecord:
            there.worktree.stand_at(commit.sha)
            if (there.worktree.folder / "broken").exists():
                return record_of("BUILD_ERROR")
            bad = (there.worktree.folder / "planted").exists()
            return record_of("MISMATCH" if bad else "PASS")

        history = there.history
        found = Search(history, step).run(history.commit("good"), history.commit("main"))
        if found.first_bad is not None:
            assert found.first_bad.commit.sha == planted, number
        else:
            assert planted in [c.sha for c in found.candidates], number
            assert any(t.mark is Mark.SKIP for t in found.trials)


@pytest.mark.parametrize(
    ("verdicts", "end", "says", "hint", "code"),
    [
        (("FAULT hard_fault", "FAULT"), Mark.GOOD, "fails, too: FAULT hard_fault: what FAULT is",
         "an older one with --good", 2),
        (("PASS", "PASS"), Mark.BAD, "the bad revision {bad} passes, too", "with --bad", 2),
        (("PASS", "LINK_ERROR"), Mark.BAD, "cannot be judged: LINK_ERROR", "--link-error bad", 2),
        (("BUILD_ERROR", "FAULT"), Mark.GOOD, "the good revision {good} cannot be judged",
         "name another revision", 2),
        (("PASS", "INFRA tool_missing"), Mark.BAD, "cannot be judged: INFRA tool_missing",
         "see to what is missing", 3),
    ],
)  # fmt: skip
def test_ends_that_are_not_what_they_should_be(
    searched: Searches, verdicts: tuple[str, str], end: Mark, says: str, hint: str, code: int
) -> None:
    there = searched(*verdicts)
    good, bad = there.history.commit("c0"), there.history.commit("c1")
    with pytest.raises(WrongEnd) as caught:
        there.run("c0", "c1")
    assert says.format(good=good, bad=bad) in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.end is end
    assert caught.value.exit_code == code


def test_a_bad_revision_that_passes_since_the_bug_is_not_committed(searched: Searches) -> None:
    there = searched("PASS", "PASS")
    (there.repository.folder / "verdict").write_text("MISMATCH\n")
    with pytest.raises(WrongEnd) as caught:
        there.run("c0", "c1")
    assert "uncommitted changes" in (caught.value.hint or "")


def test_without_verifying_only_what_is_between_is_run(searched: Searches) -> None:
    there = searched("PASS", "PASS", "PASS", "MISMATCH", "MISMATCH")
    found = there.run("c0", "c4", verify=False)
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == "c3"
    assert not {"c0", "c4"} & set(there.tried)


def test_without_verifying_the_bad_one_is_run_before_it_is_accused(searched: Searches) -> None:
    there = searched("PASS", "PASS", "MISMATCH", "PASS")
    found = there.run("c0", "c2", verify=False)
    assert found.first_bad is not None
    assert found.first_bad.record.verdict is Verdict.MISMATCH
    with pytest.raises(WrongEnd, match="passes, too"):
        there.run("c2", "c3", verify=False)


@pytest.mark.parametrize(("good", "bad"), [("c1", "c1"), ("c2", "c0")])
def test_ends_in_the_wrong_order(searched: Searches, good: str, bad: str) -> None:
    there = searched("PASS", "MISMATCH", "MISMATCH")
    with pytest.raises(WrongOrder, match="the good revision") as caught:
        there.run(good, bad)
    assert "older revision" in (caught.value.hint or "")
    assert there.tried == []


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
    """It is good where they parted, too; so the search goes on from there."""
    there = searched(repository=branches(tmp_path, "PASS", "PASS", "MISMATCH"))
    found = there.run("release", "main")
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == "main 2"
    assert "base" in there.tried


def test_a_bug_that_was_mended_on_another_branch(searched: Searches, tmp_path: Path) -> None:
    there = searched(repository=branches(tmp_path, "MISMATCH", "PASS", "MISMATCH"))
    with pytest.raises(MendedSince, match="it was mended on the way to") as caught:
        there.run("release", "main")
    assert caught.value.base == there.repository.git("rev-parse", "main~2")


def test_a_base_that_cannot_be_judged_is_said(searched: Searches, tmp_path: Path) -> None:
    there = searched(repository=branches(tmp_path, "INFRA", "PASS", "MISMATCH"))
    found = there.run("release", "main")
    assert "could not be judged; it is taken for good" in found.notes[0]


def test_another_failure_than_the_one_searched_is_said(searched: Searches) -> None:
    there = searched("PASS", "FAULT hard_fault", "MISMATCH outputs_differ")
    found = there.run("c0", "c2")
    assert found.first_bad is not None
    assert found.first_bad.commit.subject == "c1"
    short = there.history.commit("c2").short
    assert found.notes == (
        f"the bad revision {short} fails otherwise: MISMATCH outputs_differ: what MISMATCH is "
        "about",
    )


def test_interrupted_it_knows_how_far_it_was(searched: Searches) -> None:
    there = searched(*["PASS"] * 9, *["MISMATCH"] * 8)
    before = there.repository.state()

    def step(commit: Commit) -> RunRecord:
        if len(there.tried) == 4:
            raise KeyboardInterrupt
        return there.step(commit)

    history = there.history
    with pytest.raises(Interrupted) as caught:
        Search(history, step).run(history.commit("c0"), history.commit("c16"))
    known = caught.value
    inner = [int(subject[1:]) for subject in there.tried[2:]]
    bad = min([16, *(n for n in inner if n > 8)])
    good = max([0, *(n for n in inner if n <= 8)])
    assert known.bad.subject == f"c{bad}"
    assert known.goods[-1].subject == f"c{good}"
    assert known.left == bad - good - 1
    assert there.repository.state() == before
    rest = Search(history, there.step).run(known.goods[-1], known.bad, verify=False)
    assert rest.first_bad is not None
    assert rest.first_bad.commit.subject == "c9"


def test_the_users_repository_and_bisect_are_as_before(searched: Searches) -> None:
    there = searched(*["PASS"] * 5, *["MISMATCH"] * 4)
    there.repository.git("bisect", "start", "c8", "c0")
    before = there.repository.state()
    assert there.run("c0", "c8").first_bad is not None
    assert there.repository.state() == before


def test_the_summary_is_data(searched: Searches) -> None:
    there = searched("PASS", "MISMATCH outputs_differ")
    said = there.run("c0", "c1").summary()
    assert said["first_bad"]["commit"]["subject"] == "c1"
    assert said["first_bad"]["verdict"] == "MISMATCH"
    assert said["first_bad"]["cause"]["kind"] == "outputs_differ"
    assert [t["mark"] for t in said["trials"]] == ["bad", "good"]
    assert said["candidates"] == []
