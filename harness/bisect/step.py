"""The public verb: from which commit of a checkout on does a case fail?

A case is run at a commit by making the checkout's worktree stand there, and testing that.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from harness.bisect.history import Commit, History
from harness.bisect.search import Bisection, Search, Step
from harness.build.choice import FirmwareChoice
from harness.build.executorch.checkout import BUILT
from harness.build.source import FirmwareSource
from harness.case.budgets import budgets_of, tolerance_of
from harness.case.case import Case
from harness.errors import HarnessError
from harness.errors.verdict import Verdict
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.simulate.pick import AUTO
from harness.system.clock import now
from harness.system.progress import Progress, silent
from harness.system.worktree import Worktree, borrowed, top_of
from harness.target.loading import load_target, spelled


def bisect(
    case: Case,
    good: str,
    bad: str,
    options: RunOptions,
    *,
    counted: frozenset[Verdict] = frozenset(),
    verify: bool = True,
    progress: Progress = silent,
) -> tuple[Bisection, str]:
    """The search, and the command that runs the case where its worktree then stands: at the first
    bad commit, when that was found. ``options.firmware`` names the checkout.

    Raises what ``Search.run`` and ``find_checkout`` do, UnknownRevision, WorktreeBusy.
    """
    assert options.firmware.root is not None
    case = replace(case, target=spelled(load_target(case.target), case.target))
    tolerance_of(case, budgets_of(case), options.tolerance_lsb)  # finds target and model, too
    history = History(top_of(options.firmware.root))
    ends = history.commit(good), history.commit(bad)
    options = replace(options, firmware=with_parts(options.firmware))
    with borrowed(history.repository, "bisect", BUILT, progress) as worktree:
        step = at_commits(case, worktree, options, progress)
        found = Search(history, step, counted, progress).run(*ends, verify=verify)
        if found.first_bad is not None:
            worktree.stand_at(found.first_bad.commit.sha)
    return found, reproducing(case, options, worktree)


def with_parts(firmware: FirmwareChoice) -> FirmwareChoice:
    """Every part of the checkout's build named, as it has them: another worktree of it has no
    submodules, and no SDK. Raises what ``find_checkout`` does."""
    checkout = firmware.checkout()
    assert checkout is not None
    return replace(firmware, parts={n: part.folder for n, part in checkout.parts.items()})


def at_commits(case: Case, worktree: Worktree, options: RunOptions, progress: Progress) -> Step:
    """What runs ``case`` with the firmware of the worktree, as it is at a commit.

    ``options.firmware``: the user's checkout, and ``with_parts``.
    """
    firmware = replace(options.firmware, root=worktree.folder)
    there = replace(options, firmware=firmware)

    def step(commit: Commit) -> RunRecord:
        worktree.stand_at(commit.sha)
        try:
            (record,) = run_cases([case], there, lambda said: progress(f"{commit.short}: {said}"))
        except HarnessError as error:  # the revision's: the case was looked at before
            return failed_record(case, now(), error, FirmwareSource.EXECUTORCH)
        return record

    return step


def reproducing(case: Case, options: RunOptions, worktree: Worktree) -> str:
    """The command that runs the case once more, where the worktree stands; for a shell."""
    words = ["hil", "run", case.target, case.model, "--executorch", str(worktree.folder)]
    for name, folder in options.firmware.parts.items():
        words += ["--part", f"{name}={folder}"]
    if options.simulator != AUTO:
        words += ["--simulator", options.simulator]
    if options.tolerance_lsb is not None:
        words += ["--tolerance", f"{options.tolerance_lsb:g}"]
    return shlex.join(words)
