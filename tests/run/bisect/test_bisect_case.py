"""A whole bisection: a small checkout is built at its commits, and run. Its step and command."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.verdict import Verdict
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import source_named
from harness.run.bisect import BisectStep, Mark, bisect
from harness.run.pipeline import RunOptions
from harness.system.git import borrowed
from tests.firmware.executorch.small import KERNEL, OPS, commit, edit, git, small_checkout

from .conftest import Search as Searches
from .homes import own_home

CASE = Case("corstone-300-m55", "qadd")


@pytest.fixture
def options(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """Of a small checkout; its parts are told only as far as it does not have them itself."""
    own_home(tmp_path / "home", shared_hil_home, monkeypatch)
    root, parts = small_checkout(tmp_path)
    return RunOptions("qemu", firmware=FirmwareChoice((source_named("executorch"),), root, parts))


def test_the_commit_that_broke_a_kernel(options: RunOptions) -> None:
    """A commit that does not build lies beside it; edits that are not committed are not run."""
    root = options.firmware.root
    assert root is not None
    good = git(root, "rev-parse", "HEAD")
    (root / "docs" / "README.md").write_text("more\n")
    commit(root, "docs")
    other = root / OPS / "op_transpose.cpp"
    other.write_text(other.read_text() + "#error unfinished\n")
    commit(root, "unfinished")
    edit(other, "#error unfinished\n", "")
    commit(root, "finished")
    edit(root / KERNEL, "pairs.out + r * pairs.row, pairs.row)", "pairs.out, pairs.row - 1)")
    broken = commit(root, "add: tidied up")
    (root / "docs" / "README.md").write_text("even more\n")
    commit(root, "more docs")
    edit(root / KERNEL, "pairs.out, pairs.row - 1)", "pairs.out + r * pairs.row, pairs.row)")

    lines: list[str] = []
    found = bisect(CASE, good, "HEAD", options, progress=lines.append)
    assert found.first is not None, lines
    assert found.first.commit.sha == broken
    assert found.first.record.verdict is Verdict.MISMATCH
    assert found.first.record.run_dir is not None
    marks = {trial.commit.subject: trial.mark for trial in found.trials}
    assert marks["all of it"] is Mark.GOOD
    assert marks["more docs"] is Mark.BAD
    assert marks.get("unfinished", Mark.SKIP) is Mark.SKIP
    with borrowed(root, "bisect") as worktree:
        assert git(worktree.folder, "rev-parse", "HEAD") == broken
    assert git(root, "status", "--porcelain") == f"M {KERNEL}"


def test_a_revision_that_is_not_a_checkout_is_skipped(searched: Searches) -> None:
    """Through the real pipeline: what it raises for this revision does not end the search."""
    there = searched("PASS", "PASS")
    firmware = FirmwareChoice((source_named("executorch"),), there.worktree.folder)
    step = BisectStep(there.worktree, CASE, RunOptions(firmware=firmware))
    trial = step.run("c0", there.progress.append)
    assert trial.mark is Mark.SKIP
    assert trial.record.verdict is Verdict.NO_VERDICT
    assert trial.record.cause is not None
    assert f"{there.worktree.folder} is not a checkout of ExecuTorch" in trial.record.cause.text
    assert (there.worktree.folder / "verdict").read_text() == "PASS\n"
