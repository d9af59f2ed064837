"""`hil bisect`: the first commit of a checkout at which a case fails, found by `git bisect run`.

git searches in a worktree of its own, with bisect refs of its own (git-worktree(1), "Refs"), and
checks nothing out: our step puts the worktree at each commit, runs the case there and ends with
0 (good), 1 (bad) or 125 (says nothing of the product).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.core.errors import InfraError, UsageError
from harness.core.verdict import ExitCode, Verdict, Word
from harness.core.words import counted
from harness.run.record import RunRecord
from harness.system.git import GitFailed, git, revision
from harness.system.progress import Progress, silent
from harness.system.worktree import Worktree

# May be the fault of the revision or of what it is built with: bad only if the user says so.
UNDECIDED = (Verdict.EXPORT_ERROR, Verdict.BUILD_ERROR, Verdict.LINK_ERROR)
_STEP = "from harness.run.bisect import step; step()"
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")  # the user's are for the user's own work
_SHOWN = ("bisect: ", "Bisecting: ")  # how the step's and git's lines of progress begin


class Mark(Word):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


_STATUS = {Mark.GOOD: 0, Mark.BAD: 1, Mark.SKIP: 125}  # git-bisect(1), "Bisect run"


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
        run = self.record.summary()
        names = ("verdict", "verdict_text", "cause", "notes", "run_dir")
        record = {**{name: run[name] for name in names}, "mismatch_at": self.record.mismatch_at}
        return {"commit": asdict(self.commit), "mark": self.mark, **record}


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
    """``end``: "good" or "bad". The revision named so is not; ``found`` is its verdict."""

    kind = "wrong_end"

    def __init__(self, end: Mark, trial: Trial, hint: str) -> None:
        self.end, self.commit = end, trial.commit.sha
        self.found, self.run_dir = trial.record.verdict, trial.record.run_dir
        what = {Mark.GOOD: "passes, too", Mark.BAD: "fails, too", Mark.SKIP: "cannot be judged"}
        why = failure(trial.record)
        super().__init__(
            f"the {end} revision {trial.commit} {what[trial.mark]}{': ' + why if why else ''}",
            hint=hint + (f"; the run is in {self.run_dir}" if self.run_dir else ""),
        )
        if self.found is Verdict.INFRA:
            self.exit_code = ExitCode.INFRASTRUCTURE


class Interrupted(KeyboardInterrupt):
    """Its text: what is known so far, and how to continue."""


class Judge(Protocol):
    """Runs a case with the checkout in ``folder``. It is pickled: each step is a process."""

    def __call__(self, folder: Path) -> RunRecord: ...


@dataclass(frozen=True)
class Step:
    """``counted_bad``: verdicts of UNDECIDED that are bad here."""

    worktree: Worktree
    judge: Judge
    counted_bad: frozenset[Verdict] = frozenset()

    def run(self, name: str, progress: Progress) -> Trial:
        commit = commit_of(self.worktree.folder, name)
        progress(f"bisect: testing {commit}")
        self.worktree.stand_at(commit.sha)
        record = self.judge(self.worktree.folder)
        bad = record.verdict.product_failure and record.verdict not in UNDECIDED
        mark = Mark.BAD if bad or record.verdict in self.counted_bad else Mark.SKIP
        mark = Mark.GOOD if record.verdict.passed else mark
        progress(f"bisect: {commit.short} is {mark} ({record.verdict})")
        return Trial(commit, mark, record)


def search(step: Step, good: str, bad: str, progress: Progress = silent) -> Bisection:
    """The first commit of ``bad`` that is not in ``good`` and fails; the worktree then stands
    there. Raises UsageError (also WrongEnd), InfraError, Interrupted."""
    folder = step.worktree.folder
    ends = {Mark.BAD: commit_of(folder, bad), Mark.GOOD: commit_of(folder, good)}
    git(folder, *_NO_HOOKS, "bisect", "reset", "HEAD")
    try:
        git(folder, "bisect", "start", "--no-checkout", *(end.sha for end in ends.values()))
    except GitFailed as error:
        raise UsageError(
            f"no search between {ends[Mark.GOOD]} and {ends[Mark.BAD]}: {error.said}",
            hint="--good names an older revision that passes, --bad a newer one that fails",
        ) from error
    trials = [_end(step, end, commit, progress) for end, commit in ends.items()]
    notes: list[str] = []
    if len(_left(folder)) > 1:
        with tempfile.TemporaryDirectory(prefix="hil-bisect-") as scratch:
            (Path(scratch) / "step").write_bytes(pickle.dumps(step))
            notes += _git_bisect_run(folder, scratch, progress)
            files = sorted(Path(scratch).glob("trial-*"))
            trials += [pickle.loads(file.read_bytes()) for file in files]
    left = _left(folder)
    if len(left) > 1:
        return Bisection(tuple(trials), None, tuple(commit_of(folder, s) for s in left), (*notes,))
    first = next((trial for trial in trials if trial.commit.sha == left[0]), None)
    if first is None:
        raise InfraError(f"git bisect names {left[0]}, which was never run", path=folder)
    if failure(first.record).partition(":")[0] != failure(trials[0].record).partition(":")[0]:
        notes.append(f"the bad revision fails otherwise: {failure(trials[0].record)}")
    step.worktree.stand_at(left[0])
    return Bisection(tuple(trials), first, notes=tuple(notes))


def _end(step: Step, end: Mark, commit: Commit, progress: Progress) -> Trial:
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


def _git_bisect_run(folder: Path, scratch: str, progress: Progress) -> list[str]:
    """git's warnings. Raises UsageError, InfraError, Interrupted."""
    command = ["git", "-C", str(folder), "bisect", "run", sys.executable, "-c", _STEP, scratch]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as run:
        assert run.stdout is not None
        lines: list[str] = []
        try:
            for line in run.stdout:
                lines.append(line.strip())
                if line.startswith(_SHOWN):
                    progress(line.strip())
        except KeyboardInterrupt:
            run.terminate()
            raise Interrupted(_so_far(folder)) from None
    if run.returncode == 3:  # where good and bad parted, it fails already
        why = " ".join(line for line in lines if "merge base" in line or "means" in line)
        raise UsageError(why, hint="name a good revision that is part of the bad one")
    if run.returncode not in (0, 2):  # 2: only skipped ones are left
        raise InfraError(f"git bisect ended in {folder}: {' '.join(lines[-3:])}", path=folder)
    return [line for line in lines if line.startswith("warning: the merge base")]


def _refs(folder: Path) -> tuple[list[str], str]:
    """What git knows to be good, and the oldest commit it knows to be bad."""
    form = "--format=%(refname:lstrip=2) %(objectname)"
    refs = dict(
        line.split(" ") for line in git(folder, "for-each-ref", form, "refs/bisect").splitlines()
    )
    return [sha for name, sha in refs.items() if name.startswith("good-")], refs["bad"]


def _left(folder: Path) -> list[str]:
    """The commits that may be the first bad one, newest first."""
    goods, bad = _refs(folder)
    return git(folder, "rev-list", "--topo-order", bad, *(f"^{sha}" for sha in goods)).split()


def _so_far(folder: Path) -> str:
    goods, bad = _refs(folder)
    good, bad = (commit_of(folder, sha).short for sha in (goods[-1], bad))
    return (
        f"so far: {counted(len(_left(folder)), 'candidate')}; continue with --good {good} "
        f"--bad {bad}"
    )


def step() -> None:
    """The command of `git bisect run`. A defect of ours ends with 255, which ends the search: a
    lower status would be taken for a verdict."""
    folder = Path(sys.argv[1])
    try:
        this: Step = pickle.loads((folder / "step").read_bytes())
        trial = this.run("BISECT_HEAD", lambda text: print(text, flush=True))
        number = len(list(folder.iterdir()))
        (folder / f"trial-{number:06}").write_bytes(pickle.dumps(trial))
    except BaseException:
        traceback.print_exc()
        sys.exit(255)
    sys.exit(_STATUS[trial.mark])


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
        fields = git(repository, "show", "-s", "--format=%H%x00%h%x00%aI%x00%an%x00%s", sha)
    except GitFailed as error:
        raise UsageError(
            f"{repository} has no revision {name!r}: {error.said}",
            hint=f"`git -C {repository} log --oneline` lists them; a shallow clone gets the rest "
            "with `git fetch --unshallow --tags`",
            path=repository,
        ) from error
    return Commit(*fields.split("\0", 4))
