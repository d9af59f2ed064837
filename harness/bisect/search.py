"""Search the first bad commit, with the verdict of a case to tell good from bad.

The rules are those of ``git bisect``; its state is not: nothing is written to the repository, so
that a bisect of the user's goes on undisturbed and an interrupted one of ours leaves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.bisect.history import Commit, History
from harness.errors import UsageError
from harness.errors.verdict import ExitCode, Verdict, Word
from harness.run.record import RunRecord
from harness.system.progress import Progress, silent

Step = Callable[[Commit], RunRecord]  # run the case at a commit

# They may be the revision's, or of what it is built with: to be counted when the user says so.
UNDECIDED = (Verdict.EXPORT_ERROR, Verdict.BUILD_ERROR, Verdict.LINK_ERROR)


class Mark(Word):
    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True)
class Trial:
    commit: Commit
    mark: Mark
    record: RunRecord

    def summary(self) -> dict[str, Any]:
        run = self.record.summary()
        kept = {
            name: run[name] for name in ("verdict", "verdict_text", "cause", "notes", "run_dir")
        }
        where = {"mismatch_at": self.record.mismatch_at}
        return {"commit": asdict(self.commit), "mark": self.mark, **kept, **where}


@dataclass(frozen=True)
class Bisection:
    """``first_bad``: None when revisions that could not be judged hide it; then it is one of
    ``candidates``, the newest first."""

    good: Commit
    bad: Commit
    first_bad: Trial | None
    candidates: tuple[Commit, ...]
    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.PASSED if self.first_bad is not None else ExitCode.FAILED

    def summary(self) -> dict[str, Any]:
        return {
            "first_bad": None if self.first_bad is None else self.first_bad.summary(),
            "candidates": [asdict(commit) for commit in self.candidates],
            "good": asdict(self.good),
            "bad": asdict(self.bad),
            "trials": [trial.summary() for trial in self.trials],
            "notes": list(self.notes),
        }


class WrongEnd(UsageError):
    """The good revision is not good, or the bad one not bad. ``end``: "good" or "bad"."""

    kind = "wrong_end"

    def __init__(self, end: Mark, trial: Trial, hint: str) -> None:
        self.end = end
        self.commit = trial.commit.sha
        self.found = trial.record.verdict
        self.run_dir = trial.record.run_dir
        says = {Mark.GOOD: "passes, too", Mark.BAD: "fails, too", Mark.SKIP: "cannot be judged"}
        why = told(trial.record)
        super().__init__(
            f"the {end} revision {trial.commit} {says[trial.mark]}{': ' + why if why else ''}",
            hint=hint,
        )
        if self.found is Verdict.INFRA:
            self.exit_code = ExitCode.INFRASTRUCTURE


class WrongOrder(UsageError):
    def __init__(self, good: Commit, bad: Commit) -> None:
        self.good, self.bad = good.sha, bad.sha
        said = "the same commit" if good == bad else f"not older: {bad} is part of it"
        super().__init__(
            f"the good revision {good} is {said}",
            hint="--good names an older revision that passes, --bad a newer one that fails",
        )


class MendedSince(UsageError):
    """Good and bad are on two branches, and where these parted it fails already."""

    kind = "mended_since"

    def __init__(self, base: Trial, good: Commit, bad: Commit) -> None:
        self.base, self.good, self.bad = base.commit.sha, good.sha, bad.sha
        super().__init__(
            f"{good.short} is not part of {bad.short}, and {base.commit}, where the two parted, "
            f"fails already ({told(base.record)}): it was mended on the way to {good.short}",
            hint=f"name a good revision that is part of {bad.short}",
        )


class Interrupted(KeyboardInterrupt):
    """``goods`` and ``bad`` are the closest that are known, ``left`` what is between them."""

    def __init__(self, goods: Sequence[Commit], bad: Commit, left: int) -> None:
        super().__init__()
        self.goods, self.bad, self.left = tuple(goods), bad, left

    def told(self) -> str:
        good, bad = self.goods[-1].short, self.bad.short
        return (
            f"so far: good {' '.join(c.short for c in self.goods)}, bad {bad}, "
            f"{_counted(self.left, 'revision')} between; go on with --good {good} --bad {bad} "
            "--no-verify"
        )


def told(record: RunRecord) -> str:
    """What is wrong, in a line; empty when nothing is."""
    if record.verdict.passed:
        return ""
    cause = record.cause
    verdict = record.verdict_text
    return verdict if cause is None else f"{verdict} {cause.kind}: {cause.text}"


@dataclass(frozen=True)
class Search:
    """``counted``: verdicts of UNDECIDED that are bad here."""

    history: History
    step: Step
    counted: frozenset[Verdict] = frozenset()
    progress: Progress = silent

    def run(self, good: Commit, bad: Commit, *, verify: bool = True) -> Bisection:
        """The first commit of ``bad`` that is not in ``good`` and fails.

        ``verify``: run the two ends first. Raises WrongOrder, WrongEnd, MendedSince, Unrelated,
        Interrupted.
        """
        if self.history.is_ancestor(bad, good):
            raise WrongOrder(good, bad)
        trials: dict[str, Trial] = {}
        goods = [good]
        try:
            if verify:
                self._verify(Mark.BAD, bad, trials)
                self._verify(Mark.GOOD, good, trials)
            notes = self._bases(good, bad, trials)
            return self._narrow(goods, bad, trials, notes)
        except KeyboardInterrupt:
            closest = [t.commit for t in trials.values() if t.mark is Mark.BAD]
            bad = min([bad, *closest], key=lambda c: len(self.history.between(goods, c)))
            left = len(self.history.between(goods, bad)) - 1
            raise Interrupted(goods, bad, left) from None

    def _try(self, commit: Commit, trials: dict[str, Trial]) -> Trial:
        record = self.step(commit)
        trials[commit.sha] = trial = Trial(commit, self._mark(record.verdict), record)
        self.progress(f"bisect: {commit.short} is {_SHOWN[trial.mark]} ({record.verdict})")
        return trial

    def _mark(self, verdict: Verdict) -> Mark:
        if verdict.passed:
            return Mark.GOOD
        if verdict in UNDECIDED:
            return Mark.BAD if verdict in self.counted else Mark.SKIP
        return Mark.BAD if verdict.product_failure else Mark.SKIP

    def _verify(self, end: Mark, commit: Commit, trials: dict[str, Trial]) -> None:
        self.progress(f"bisect: is the {end} revision {end}? testing {commit}")
        trial = self._try(commit, trials)
        if trial.mark is not end:
            raise WrongEnd(end, trial, self._hint(end, trial))

    def _hint(self, end: Mark, trial: Trial) -> str:
        verdict = trial.record.verdict
        where = f"; the run is in {trial.record.run_dir}" if trial.record.run_dir else ""
        if end is Mark.BAD and verdict in UNDECIDED:
            option = f"--{str(verdict).lower().replace('_', '-')} bad"
            return f"{option} searches the commit that brought this{where}"
        if trial.mark is Mark.SKIP:
            return f"name another revision, or see to what is missing{where}"
        if end is Mark.GOOD:
            return f"name an older one with --good{where}"
        if self.history.dirty():
            return "the checkout has uncommitted changes, which no revision has: commit them first"
        return f"name another one with --bad{where}"

    def _bases(self, good: Commit, bad: Commit, trials: dict[str, Trial]) -> list[str]:
        """A good revision of another branch is none until the point where they parted is."""
        notes: list[str] = []
        if self.history.is_ancestor(good, bad):
            return notes
        for base in self.history.merge_bases(good, bad):
            self.progress(f"bisect: {good.short} is on another branch: testing {base}")
            trial = self._try(base, trials)
            if trial.mark is Mark.BAD:
                raise MendedSince(trial, good, bad)
            if trial.mark is Mark.SKIP:
                notes.append(
                    f"{base}, where good and bad parted, could not be judged; it is taken for good"
                )
        return notes

    def _narrow(
        self, goods: list[Commit], bad: Commit, trials: dict[str, Trial], notes: list[str]
    ) -> Bisection:
        first, last = goods[0], bad
        while True:
            there = self.history.between(goods, bad)
            skipped = [sha for sha in there if sha in trials and trials[sha].mark is Mark.SKIP]
            open_ = [sha for sha in there if sha != bad.sha and sha not in skipped]
            if not open_:
                break
            commit = self.history.commit(spread(open_, len(skipped)))
            steps = math.ceil(math.log2(len(open_) + 1))
            self.progress(
                f"bisect: {_counted(len(open_), 'revision')} left (about "
                f"{_counted(steps, 'step')}): testing {commit}"
            )
            trial = self._try(commit, trials)
            if trial.mark is Mark.GOOD:
                goods.append(commit)
            elif trial.mark is Mark.BAD:
                bad = commit
        found = None
        if not skipped:
            found = trials.get(bad.sha) or self._unverified(bad, trials)
            notes = [*notes, *_otherwise(found, trials.get(last.sha))]
        candidates = () if found else self.history.newest_first(goods, bad)
        return Bisection(first, last, found, candidates, tuple(trials.values()), tuple(notes))

    def _unverified(self, bad: Commit, trials: dict[str, Trial]) -> Trial:
        """The bad revision itself is the first bad one, and nobody has run it yet."""
        self._verify(Mark.BAD, bad, trials)
        return trials[bad.sha]


_SHOWN = {Mark.GOOD: "good", Mark.BAD: "bad", Mark.SKIP: "skipped"}


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def spread(ordered: Sequence[str], skipped: int) -> str:
    """Which of the revisions to test, the one that halves them first.

    What cannot be built has neighbours that cannot either; so after a skipped revision the next
    is taken further away, each time elsewhere (van der Corput's sequence), rather near the best
    (the power 1.5 is git's own, in bisect.c).
    """
    fraction, half, number = 0.0, 0.5, skipped
    while number:
        fraction += half * (number & 1)
        number, half = number >> 1, half / 2
    return ordered[int(len(ordered) * fraction**1.5)]


def _otherwise(found: Trial, last: Trial | None) -> list[str]:
    """Beside the first failure: it may not be the one that was searched."""
    if last is None or _failure(found.record) == _failure(last.record):
        return []
    return [f"the bad revision {last.commit.short} fails otherwise: {told(last.record)}"]


def _failure(record: RunRecord) -> tuple[str, str | None]:
    return record.verdict, None if record.cause is None else record.cause.kind
