"""A whole bisection: a small checkout is built at its commits, and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bisect.search import Mark
from harness.bisect.step import bisect
from harness.build.choice import FirmwareChoice
from harness.build.source import FirmwareSource
from harness.case.case import Case
from harness.errors.verdict import Verdict
from harness.run.pipeline import RunOptions
from harness.system.worktree import borrowed
from tests.build.executorch.small import KERNEL, OPS, commit, edit, git, small_checkout

from .homes import own_home

CASE = Case("corstone-300-m55", "qadd")


@pytest.fixture
def options(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """Of a small checkout; its parts are told only as far as it does not have them itself."""
    own_home(tmp_path / "home", shared_hil_home, monkeypatch)
    root, parts = small_checkout(tmp_path)
    return RunOptions("qemu", firmware=FirmwareChoice((FirmwareSource.EXECUTORCH,), root, parts))


def test_the_commit_that_broke_a_kernel(options: RunOptions) -> None:
    """A commit that does not build lies beside it; edits that are not committed are not run."""
    root = options.firmware.root
    assert root is not None
    good = git(root, "rev-parse", "HEAD")
    (root / "docs" / "README.md").write_text("more\n")
    commit(root, "docs")
    softmax = root / OPS / "op_softmax.cpp"
    softmax.write_text(softmax.read_text() + "#error unfinished\n")
    commit(root, "unfinished")
    edit(softmax, "#error unfinished\n", "")
    commit(root, "finished")
    edit(root / KERNEL, "pairs.out + r * pairs.row, pairs.row)", "pairs.out, pairs.row - 1)")
    broken = commit(root, "add: tidied up")
    (root / "docs" / "README.md").write_text("even more\n")
    commit(root, "more docs")
    edit(root / KERNEL, "pairs.out, pairs.row - 1)", "pairs.out + r * pairs.row, pairs.row)")

    said: list[str] = []
    found, command = bisect(CASE, good, "HEAD", options, progress=said.append)
    assert found.first_bad is not None, said
    assert found.first_bad.commit.sha == broken
    assert found.first_bad.record.verdict is Verdict.MISMATCH
    assert found.first_bad.record.run_dir is not None
    marks = {trial.commit.subject: trial.mark for trial in found.trials}
    assert marks["all of it"] is Mark.GOOD
    assert marks["more docs"] is Mark.BAD
    assert marks.get("unfinished", Mark.SKIP) is Mark.SKIP
    with borrowed(root, "bisect") as worktree:
        assert git(worktree.folder, "rev-parse", "HEAD") == broken
        assert f"--executorch {worktree.folder} " in f"{command} "
    assert git(root, "status", "--porcelain") == f"M {KERNEL}"
