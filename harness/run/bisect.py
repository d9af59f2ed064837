"""`hil bisect`: the first commit of a checkout at which a case fails, or is fixed again.

git chooses the commits, in a worktree of the harness with bisect refs of its own (git-worktree(1),
"Refs"), and checks nothing out. Each step puts the worktree at the commit, runs the case there and
tells git whether it is good, bad, or to be skipped: what 0, 1 and 125 are to `git bisect run`. To
git the older end is always good: when a fix is searched, it gets the marks exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.case import Case
from harness.config.case_budgets import budgets_of, tolerance_of
from harness.config.loading import load_target, loadable_name
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.core.verdict import Verdict, Word
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import Firmware
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.run.subjects import firmware_of
from harness.system.git import GitFailed, Worktree, borrowed, git, top_of
from harness.system.progress import Progress, silent

# May be the fault of the revision or of what it is built with: bad only if the user says so.
UNDECIDED = (Verdict.EXPORT_ERROR, Verdict.BUILD_ERROR, Verdict.LINK_ERROR)
_ENDS = (
    "--good names an older revision that passes and is part of the bad one, --bad a newer one that "
    "fails (with --fixed the older one fails); what is not committed is in neither. --count-bad "
    "LINK_ERROR counts skipped ones as bad"
)
_COMMIT = "--format=%H%x00%an, %as%x00%s"


class Mark(Word):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Commit:
    sha: str
    author: str  # and the date
    subject: str

    def __str__(self) -> str:
        return f"{self.sha[:10]} {self.subject}"


@dataclass(frozen=True)
class BisectTrial:
    commit: Commit
    mark: Mark
    record: RunRecord

    def __str__(self) -> str:
        found = {Mark.GOOD: "passes", Mark.BAD: "fails", Mark.SKIP: "cannot be judged"}[self.mark]
        cause = self.record.cause
        why = "" if cause is None else f": {self.record.verdict_text} {cause.kind}: {cause.text}"
        return f"{self.commit} {found}{why}"

    def summary(self) -> dict[str, Any]:
        return {**self.record.summary(), "commit": asdict(self.commit), "mark": self.mark}


@dataclass(frozen=True)
class Bisection:
    """The result of a search.

    ``trials``: the two ends first. ``candidates``: the first bad commit, or, when skipped revisions
    hide it, all that it may be, newest first. ``fixed``: the first good one instead."""

    trials: tuple[BisectTrial, ...]
    candidates: tuple[Commit, ...]
    fixed: bool = False

    @property
    def first(self) -> BisectTrial | None:
        found = self.candidates[0] if len(self.candidates) == 1 else None
        return next((trial for trial in self.trials if trial.commit == found), None)

    def summary(self) -> dict[str, Any]:
        return {
            "first_good" if self.fixed else "first_bad": self.first and self.first.summary(),
            "candidates": [asdict(commit) for commit in self.candidates],
            "trials": [trial.summary() for trial in self.trials],
        }


@dataclass(frozen=True)
class BisectStep:
    """Runs the case in the worktree.

    ``counted_bad``: verdicts of UNDECIDED that are bad. ``fixed``: a fix is searched."""

    worktree: Worktree
    case: Case
    options: RunOptions
    counted_bad: frozenset[Verdict] = frozenset()
    fixed: bool = False

    def run(self, name: str, progress: Progress) -> BisectTrial:
        """Run the case at the revision ``name``, where the worktree then stands."""
        commit = commit_of(self.worktree.folder, name)
        progress(f"bisect: testing {commit}")
        self.worktree.stand_at(commit.sha)
        record = self.run_case()
        bad = record.verdict.product_failure and record.verdict not in UNDECIDED
        mark = Mark.BAD if bad or record.verdict in self.counted_bad else Mark.SKIP
        mark = Mark.GOOD if record.verdict.passed else mark
        trial = BisectTrial(commit, mark, record)
        progress(f"bisect: {trial}")
        return trial

    def run_case(self) -> RunRecord:
        try:
            (record,) = run_cases([self.case], self.options)
        except HarnessError as error:  # the revision's: the case was validated before
            return failed_record(self.case, error, self.options.firmware.sources[0].name)
        return record


def bisect(
    case: Case,
    good: str,
    bad: str,
    options: RunOptions,
    *,
    counted_bad: frozenset[Verdict] = frozenset(),
    fixed: bool = False,
    progress: Progress = silent,
) -> Bisection:
    """``options.firmware``: the checkout. Raises as ``search``, ``find_checkout``, ``borrowed``."""
    assert options.firmware.root is not None
    case = replace(case, target=loadable_name(load_target(case.target), case.target))
    tolerance_of(case, budgets_of(case), options.tolerance_lsb)  # validates target and model, too
    top = top_of(options.firmware.root)
    for name in (good, bad):
        commit_of(top, name)
    firmware = with_parts(options.firmware)
    with borrowed(top, "bisect", progress=progress) as worktree:
        firmware = replace(firmware, root=worktree.folder)
        exporter = replace(options.exporter, root=options.exporter.root and worktree.folder)
        options = replace(options, firmware=firmware, exporter=exporter)
        return search(BisectStep(worktree, case, options, counted_bad, fixed), good, bad, progress)


def firmware_at(
    target: Path, commits: str, choice: FirmwareChoice, progress: Progress
) -> list[Firmware]:
    """Return the firmware of ``TARGET/runner`` at both ends of ``BASE..HEAD``, built in one tree.

    Raises as ``at_commits`` and a build."""
    places = at_commits(commits, choice, "size", progress)
    return [built for there in places for built in firmware_of(target, there, progress)]


def at_commits(
    commits: str, choice: FirmwareChoice, use: str, progress: Progress
) -> Iterator[FirmwareChoice]:
    """Yield the choice with one worktree as its checkout, standing at BASE, then at HEAD.

    Raises UsageError when ``commits`` is not ``BASE..HEAD``, and as ``borrowed``."""
    names = commits.split("..")
    if len(names) != 2 or not all(names) or choice.root is None:
        what = f"{commits!r} is not BASE..HEAD" if choice.root else "no checkout is named"
        raise UsageError(
            f"two commits of a checkout are compared, and {what}",
            hint="--executorch DIR --commits BASE..HEAD",
        )
    top = top_of(choice.root)
    found = [commit_of(top, name) for name in names]
    choice = with_parts(choice)
    with borrowed(top, use, progress=progress) as worktree:
        for commit in found:
            worktree.stand_at(commit.sha)
            yield replace(choice, root=worktree.folder)


def with_parts(firmware: FirmwareChoice) -> FirmwareChoice:
    """Name every part of the checkout's build where the checkout has it.

    Another worktree of it has no submodules and no SDK. Raises what ``find_checkout`` does."""
    checkout = firmware.checkout()
    assert checkout is not None
    return replace(firmware, parts={n: part.folder for n, part in checkout.parts.items()})


def search(step: BisectStep, good: str, bad: str, progress: Progress = silent) -> Bisection:
    """Find the first commit of ``bad`` that is not in ``good`` and fails.

    If ``step.fixed``, find the first of ``good`` that passes. The worktree then stands there.
    Raises UsageError, InfraError."""
    folder = step.worktree.folder
    ends = {Mark.BAD: commit_of(folder, bad), Mark.GOOD: commit_of(folder, good)}
    if step.fixed:
        ends = dict(reversed(ends.items()))  # the newer first
    of_git = {**dict(zip(ends, (Mark.BAD, Mark.GOOD), strict=True)), Mark.SKIP: Mark.SKIP}
    git(folder, "-c", "core.hooksPath=/dev/null", "bisect", "reset", "HEAD")
    try:
        git(folder, "bisect", "start", "--no-checkout", *(end.sha for end in ends.values()))
    except GitFailed as error:
        between = f"{ends[Mark.GOOD]} and {ends[Mark.BAD]}"
        raise UsageError(f"no search between {between}: {error.said}", hint=_ENDS) from error
    trials = [step.run(commit.sha, progress) for commit in ends.values()]
    _check_ends(ends, trials)
    while set(left := _candidates(folder)) - {trial.commit for trial in trials}:
        trials.append(step.run("BISECT_HEAD", progress))
        try:
            progress(git(folder, "bisect", of_git[trials[-1].mark]).partition("\n")[0])
        except GitFailed as error:
            left = _candidates(folder)
            if not left or set(left) - {trial.commit for trial in trials}:  # else all were skipped
                raise UsageError(f"git cannot go on: {error.said}", hint=_ENDS) from error
    if len(left) == 1:
        step.worktree.stand_at(left[0].sha)
    return Bisection(tuple(trials), tuple(left), step.fixed)


def _check_ends(ends: Iterable[Mark], trials: Iterable[BisectTrial]) -> None:
    """Raise UsageError, or InfraError for INFRA, for an end that is not as named; it has both."""
    pairs = list(zip(ends, trials, strict=True))
    if wrong := [trial.record for end, trial in pairs if trial.mark is not end]:
        infra = any(record.verdict is Verdict.INFRA for record in wrong)
        text = "; ".join(f"the {end} revision {trial}" for end, trial in reversed(pairs))
        raise (InfraError if infra else UsageError)(text, hint=_ENDS, path=wrong[0].run_dir)


def _candidates(folder: Path) -> list[Commit]:
    """Return the commits that may be the first bad one, newest first."""
    text = git(folder, "log", "--bisect", "--topo-order", "--no-show-signature", _COMMIT)
    return [Commit(*line.split("\0", 2)) for line in text.splitlines()]


def commit_of(repository: Path, name: str) -> Commit:
    """Return the commit of a revision (a tag, a branch, HEAD~3, a hash). Raises UsageError."""
    try:
        sha = git(repository, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        return Commit(*git(repository, "show", "-s", _COMMIT, sha).split("\0", 2))
    except GitFailed as error:
        raise UsageError(
            f"{repository} has no revision {name!r}: {error.said}",
            hint="a shallow clone gets the rest with `git fetch --unshallow --tags`",
        ) from error
