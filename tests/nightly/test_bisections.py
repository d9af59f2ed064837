"""Protects the way from a new failure to its commit: what is bisected, how long, what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.judgement import Judgement
from harness.core.verdict import Verdict
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import source_named
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.store import History
from harness.nightly.night import culprits
from harness.run.bisect import Bisection, BisectTrial, Commit, Mark
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.system.progress import Progress, silent
from tests.firmware.executorch.small import commit, git, small_checkout
from tests.nightly.history.made import KNOWN, TARGET, night, row
from tests.run.bisect.homes import own_home

CASE = f"{TARGET}/qadd [executorch]"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with closing(open_history(f"sqlite:///{tmp_path}/h.db")) as opened:
        yield opened


def failed(history: History, good: str, bad: str, *cases: str) -> Comparison:
    for day, (verdict, sources) in enumerate((("PASS", good), ("MISMATCH", bad)), 1):
        history.begin(last := night(day, *cases))
        identity = replace(KNOWN, sources=sources)
        more = {"identity": identity, "source": "executorch"}
        rows = [row(day, verdict, case, **more) for case in cases]
        history.append([replace(r, model=r.model.partition(" ")[0]) for r in rows])
    return compare(history, last)


def test_the_commit_is_named(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a bisection between the two nights' commits, as test_bisect_case.py has a real one; it is
    in the history afterwards."""
    good, bad, firmware = "a" * 40, "b" * 40, FirmwareChoice((), tmp_path)
    bisected = []

    def found(case: Case, *ends: str, progress: Progress) -> Bisection:
        bisected.append((case, *ends))
        broken = Commit(bad, "Ann, today", "add: tidied up")
        record = RunRecord(case, "", Judgement(Verdict.MISMATCH))
        return Bisection((BisectTrial(broken, Mark.BAD, record),), (broken,))

    monkeypatch.setattr("harness.nightly.night.bisect", found)
    page = failed(history, good, bad, CASE)
    ((case, text),) = culprits(page, firmware, 60, silent)
    options = RunOptions(firmware=replace(firmware, sources=(source_named("executorch"),)))
    assert bisected == [(Case(TARGET, "qadd"), good, bad, options)]
    assert case == CASE
    assert text == f"the first bad commit is {bad[:10]} add: tidied up (Ann, today)"
    history.blame("n2", {case: text})
    history.blame("n2", {case: "something else"})
    assert compare(history, page.night).cases[0].culprit == text


def test_the_first_three_and_why_nothing_was_found(history: History, tmp_path: Path) -> None:
    names = [f"{TARGET}/m{number} [executorch]" for number in range(5)]
    page = failed(history, "a" * 40, "b" * 40, *names)
    nowhere = FirmwareChoice((), tmp_path / "nowhere")
    found = dict(culprits(page, nowhere, 60, silent))
    assert list(found) == names[:3]
    assert all(text.startswith("no commit was found: ") for text in found.values())


def test_the_time_is_over(
    history: History, tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_home(tmp_path / "home", shared_hil_home, monkeypatch)
    root, parts = small_checkout(tmp_path)
    good = git(root, "rev-parse", "HEAD")
    (root / "docs" / "README.md").write_text("more\n")
    page = failed(history, good, commit(root, "docs"), CASE)
    (found,) = culprits(page, FirmwareChoice((), root, parts), 0, silent)
    assert found == (CASE, "no commit was found: the suite's 0 minutes were over")


def test_what_has_no_two_commits_is_not_bisected(history: History) -> None:
    """Edits that are not committed are of no commit, and the bundled runner is of none."""
    edited = failed(history, "a" * 40, f"{'b' * 40}+edits 00ff", CASE)
    assert list(culprits(edited, FirmwareChoice(), 60, silent)) == []
