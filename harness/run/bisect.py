"""`hil bisect`: the first commit of a checkout at which a case fails, found by `git bisect`.

git chooses the commits, in a worktree of the harness with bisect refs of its own (git-worktree(1),
"Refs"), and checks nothing out. Each step puts the worktree at the commit, runs the case there and
tells git whether it is good, bad, or to be skipped since it says nothing about the product.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.budgets import budgets_of, tolerance_of
from harness.config.case import Case
from harness.config.loading import load_target, spelled
from harness.core.errors import HarnessError, UsageError
from harness.core.verdict import ExitCode, Verdict, Word
from harness.export.exporter import ExporterChoice
from harness.firmware.executorch.checkout import BUILT
from harness.firmware.source import FirmwareChoice
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.sim.simulator import AUTO
from harness.system.clock import now
from harness.system.git import GitFailed, Worktree, borrowed, git, revision, top_of
from harness.system.progress import Progress, silent

# May be the fault of the revision or of what it is built with: bad only if the user says so.
UNDECIDED = (Verdict.EXPORT_ERROR, Verdict.BUILD_ERROR, Verdict.LINK_ERROR)
_COMMIT = "--format=%H%x00%h%x00%aI%x00%an%x00%s"


class Mark(Word):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Commit:
    """``date`` is the author's, ISO 8601 with the offset."""

    sha: str
    short: str
    date: str
    author: str
    subject: str

    def __str__(self) -> str:
        return f"{self.short} {self.subject}"


@dataclass(frozen=True)
class Trial:
    commit: Commit
    mark: Mark
    record: RunRecord

    def summary(self) -> dict[str, Any]:
        return {**self.record.summary(), "commit": asdict(self.commit), "mark": self.mark}


@dataclass(frozen=True)
class Bisection:
    """``trials``: the two ends first. ``first_bad``: None when skipped revisions hide it; then it
    is one of ``candidates``, newest first. ``command`` runs the case where the worktree stands."""

    trials: tuple[Trial, ...]
    first_bad: Trial | None
    candidates: tuple[Commit, ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.PASSED if self.first_bad is not None else ExitCode.FAILED

    def summary(self) -> dict[str, Any]:
        return {
            "first_bad": None if self.first_bad is None else self.first_bad.summary(),
            "candidates": [asdict(commit) for commit in self.candidates],
            "trials": [trial.summary() for trial in self.trials],
            "notes": list(self.notes),
            "command": self.command,
        }


class WrongEnd(UsageError):
    """The revision named by ``--good`` or ``--bad`` (``end``) is not that."""

    kind = "wrong_end"

    def __init__(self, end: Mark, trial: Trial, hint: str) -> None:
        self.end, self.run_dir = end, trial.record.run_dir
        result = {Mark.GOOD: "passes, too", Mark.BAD: "fails, too", Mark.SKIP: "cannot be judged"}
        why = failure(trial.record)
        super().__init__(
            f"the {end} revision {trial.commit} {result[trial.mark]}{': ' + why if why else ''}",
            hint=hint + (f"; the run is in {self.run_dir}" if self.run_dir else ""),
        )
        if trial.record.verdict is Verdict.INFRA:
            self.exit_code = ExitCode.INFRASTRUCTURE


@dataclass(frozen=True)
class Step:
    """Runs the case at a commit. ``counted_bad``: verdicts of UNDECIDED that are bad."""

    worktree: Worktree
    case: Case
    options: RunOptions
    counted_bad: frozenset[Verdict] = frozenset()

    def run(self, name: str, progress: Progress) -> Trial:
        """Runs the case at the revision ``name``, where the worktree then stands."""
        commit = commit_of(self.worktree.folder, name)
        progress(f"bisect: testing {commit}")
        self.worktree.stand_at(commit.sha)
        record = self.run_case()
        bad = record.verdict.product_failure and record.verdict not in UNDECIDED
        mark = Mark.BAD if bad or record.verdict in self.counted_bad else Mark.SKIP
        mark = Mark.GOOD if record.verdict.passed else mark
        progress(f"bisect: {commit.short} is {mark} ({record.verdict})")
        return Trial(commit, mark, record)

    def run_case(self) -> RunRecord:
        """Runs the case as ``hil run --executorch WORKTREE`` does."""
        folder = self.worktree.folder
        firmware = replace(self.options.firmware, root=folder)
        exporter = ExporterChoice(None if self.options.exporter.root is None else folder)
        options = replace(self.options, firmware=firmware, exporter=exporter)
        try:
            (record,) = run_cases([self.case], options)
        except HarnessError as error:  # the revision's: the case was validated before
            return failed_record(self.case, now(), error, firmware.sources[0].name)
        return record

    def command(self) -> str:
        """The same for a shell."""
        options, folder = self.options, str(self.worktree.folder)
        words = ["hil", "run", self.case.target, self.case.model, "--executorch", folder]
        for name, part in options.firmware.parts.items():
            words += ["--part", f"{name}={part}"]
        if options.exporter.root is not None:
            words += ["--exporter", "checkout"]
        if options.simulator != AUTO:
            words += ["--simulator", options.simulator]
        if options.tolerance_lsb is not None:
            words += ["--tolerance", f"{options.tolerance_lsb:g}"]
        return shlex.join(words)


def bisect(
    case: Case,
    good: str,
    bad: str,
    options: RunOptions,
    *,
    counted_bad: frozenset[Verdict] = frozenset(),
    progress: Progress = silent,
) -> Bisection:
    """``options.firmware`` names the checkout. Raises what ``search`` and ``find_checkout`` do,
    WorktreeBusy."""
    assert options.firmware.root is not None
    case = replace(case, target=spelled(load_target(case.target), case.target))
    tolerance_of(case, budgets_of(case), options.tolerance_lsb)  # validates target and model, too
    top = top_of(options.firmware.root)
    for name in (good, bad):
        commit_of(top, name)
    options = replace(options, firmware=with_parts(options.firmware))
    within = BUILT if options.exporter.root is None else ("*",)
    with borrowed(top, "bisect", within, progress) as worktree:
        step = Step(worktree, case, options, counted_bad)
        return replace(search(step, good, bad, progress), command=step.command())


def with_parts(firmware: FirmwareChoice) -> FirmwareChoice:
    """Names every part of the checkout's build where the checkout has it: another worktree of it
    has no submodules and no SDK. Raises what ``find_checkout`` does."""
    checkout = firmware.checkout()
    assert checkout is not None
    return replace(firmware, parts={n: part.folder for n, part in checkout.parts.items()})


def search(step: Step, good: str, bad: str, progress: Progress = silent) -> Bisection:
    """The first commit of ``bad`` that is not in ``good`` and fails; the worktree then stands
    there. Raises UsageError (also WrongEnd), InfraError."""
    folder = step.worktree.folder
    ends = {Mark.BAD: commit_of(folder, bad), Mark.GOOD: commit_of(folder, good)}
    git(folder, "-c", "core.hooksPath=/dev/null", "bisect", "reset", "HEAD")
    try:
        git(folder, "bisect", "start", "--no-checkout", *(end.sha for end in ends.values()))
    except GitFailed as error:
        raise UsageError(
            f"no search between {ends[Mark.GOOD]} and {ends[Mark.BAD]}: {error.said}",
            hint="--good names an older revision that passes, --bad a newer one that fails",
        ) from error
    trials = [_run_end(step, end, commit, progress) for end, commit in ends.items()]
    notes = _search_between(step, trials, progress)
    first, *others = _candidates(folder)
    if others:
        return Bisection(tuple(trials), None, (first, *others), tuple(notes))
    first_bad = next(trial for trial in trials if trial.commit == first)
    if failure(first_bad.record).partition(":")[0] != failure(trials[0].record).partition(":")[0]:
        notes.append(f"the bad revision fails otherwise: {failure(trials[0].record)}")
    step.worktree.stand_at(first.sha)
    return Bisection(tuple(trials), first_bad, notes=tuple(notes))


def _run_end(step: Step, end: Mark, commit: Commit, progress: Progress) -> Trial:
    trial = step.run(commit.sha, progress)
    if trial.mark is end:
        return trial
    hint = "name another revision, or install what is missing"
    if end is Mark.BAD and trial.record.verdict in UNDECIDED:
        option = str(trial.record.verdict).lower().replace("_", "-")
        hint = f"--{option} bad searches for the commit that brought this"
    elif trial.mark is Mark.BAD:
        hint = "name an older one with --good, or try --exporter checkout"
    elif trial.mark is Mark.GOOD and revision(step.worktree.checkout).dirty:
        hint = "the checkout has uncommitted changes, which no revision has: commit them first"
    raise WrongEnd(end, trial, hint)


def _search_between(step: Step, trials: list[Trial], progress: Progress) -> list[str]:
    """Appends a trial for each commit that git chooses until one candidate is left, or only skipped
    ones. Returns notes. Raises UsageError, InfraError."""
    folder = step.worktree.folder
    notes: list[str] = []
    while untried := _untried(folder, trials):
        trial = step.run("BISECT_HEAD", progress)
        trials.append(trial)
        is_merge_base = trial.commit not in untried  # git asks for it before it searches
        if is_merge_base and trial.mark is Mark.SKIP:
            notes.append(f"the merge base {trial.commit} was skipped: it may be bad already")
        try:
            progress(git(folder, "bisect", trial.mark).partition("\n")[0])
        except GitFailed as error:
            if is_merge_base and trial.mark is Mark.BAD:
                hint = "name a good revision that is part of the bad one"
                raise UsageError(
                    f"the merge base already fails: {error.said}", hint=hint
                ) from error
            if _untried(folder, trials):
                raise  # else git says in this way that only skipped commits are left
    return notes


def _untried(folder: Path, trials: list[Trial]) -> list[Commit]:
    """The candidates that may still be told apart; none when one is left, or only skipped ones."""
    return [c for c in _candidates(folder) if all(c != trial.commit for trial in trials)]


def _candidates(folder: Path) -> list[Commit]:
    """The commits that may be the first bad one, newest first."""
    text = git(folder, "log", "--bisect", "--topo-order", "--no-show-signature", _COMMIT)
    return [Commit(*line.split("\0", 4)) for line in text.splitlines()]


def failure(record: RunRecord) -> str:
    """What is wrong, in a line; empty for a PASS."""
    if record.verdict.passed:
        return ""
    cause = record.cause
    return record.verdict_text + ("" if cause is None else f" {cause.kind}: {cause.text}")


def commit_of(repository: Path, name: str) -> Commit:
    """The commit of a revision (a tag, a branch, HEAD~3, a hash). Raises UsageError."""
    try:
        sha = git(repository, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        return Commit(*git(repository, "show", "-s", _COMMIT, sha).split("\0", 4))
    except GitFailed as error:
        raise UsageError(
            f"{repository} has no revision {name!r}: {error.said}",
            hint=f"`git -C {repository} log --oneline` lists them; a shallow clone gets the rest "
            "with `git fetch --unshallow --tags`",
            path=repository,
        ) from error
