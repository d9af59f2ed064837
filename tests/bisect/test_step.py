"""One step: a commit that cannot be tested is a record, and the command can be copied."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.bisect.search import Mark, Search
from harness.bisect.step import at_commits, reproducing
from harness.build.choice import FirmwareChoice
from harness.build.source import FirmwareSource
from harness.errors.verdict import Verdict
from harness.run.pipeline import RunOptions
from harness.system.worktree import Worktree

from .conftest import Search as Searches
from .histories import CASE

EXECUTORCH = FirmwareChoice((FirmwareSource.EXECUTORCH,))


def test_a_revision_that_is_no_checkout_is_skipped(searched: Searches) -> None:
    """Through the real pipeline: what it raises for this revision must not end the search."""
    there = searched("PASS", "PASS")
    said: list[str] = []
    step = at_commits(CASE, there.worktree, RunOptions(firmware=EXECUTORCH), said.append)
    trial = Search(there.history, step)._try(there.history.commit("c0"), {})
    assert trial.mark is Mark.SKIP
    assert trial.record.verdict is Verdict.NO_VERDICT
    assert trial.record.cause is not None
    assert f"{there.worktree.folder} is not a checkout of ExecuTorch" in trial.record.cause.text
    assert (there.worktree.folder / "verdict").read_text() == "PASS\n"


def test_the_command_says_all_that_was_said() -> None:
    firmware = FirmwareChoice((FirmwareSource.EXECUTORCH,), None, {"cmsis-nn": Path("/src/my nn")})
    options = RunOptions(simulator="qemu", tolerance_lsb=2, firmware=firmware)
    command = reproducing(CASE, options, Worktree(Path("/src/et"), Path("/state/w/et")))
    assert shlex.split(command) == [
        "hil", "run", "corstone-300-m55", "ds_cnn", "--executorch", "/state/w/et",
        "--part", "cmsis-nn=/src/my nn", "--simulator", "qemu", "--tolerance", "2",
    ]  # fmt: skip
