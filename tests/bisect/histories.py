"""Histories to search in: real repositories, and a step that reads what a commit has in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.bisect.history import Commit, History
from harness.bisect.search import Bisection, Search
from harness.case.case import Case
from harness.errors.verdict import Verdict
from harness.judge.evidence import Cause, Judgement
from harness.run.record import RunRecord
from harness.system.worktree import Worktree
from tests.system.repository import Repository, make_repository

CASE = Case("corstone-300-m55", "ds_cnn")


def record_of(content: str) -> RunRecord:
    """``content`` is the verdict, and after a space the kind of its cause."""
    name, _, kind = content.strip().partition(" ")
    verdict = Verdict[name]
    cause = None if verdict.passed else Cause(kind or "planted", f"what {name} is about")
    return RunRecord(CASE, "2026-01-01T00:00:00+00:00", Judgement(verdict, cause))


@dataclass(frozen=True)
class Searched:
    """A repository in which each commit's file says how a case ends there."""

    repository: Repository
    worktree: Worktree
    tried: list[str] = field(default_factory=list)  # subjects, in order
    said: list[str] = field(default_factory=list)

    @property
    def history(self) -> History:
        return History(self.repository.folder)

    def step(self, commit: Commit) -> RunRecord:
        self.tried.append(commit.subject)
        self.worktree.stand_at(commit.sha)
        return record_of((self.worktree.folder / "verdict").read_text())

    def search(self, *counted: Verdict) -> Search:
        return Search(self.history, self.step, frozenset(counted), self.said.append)

    def run(self, good: str, bad: str, *counted: Verdict, verify: bool = True) -> Bisection:
        ends = self.history.commit(good), self.history.commit(bad)
        return self.search(*counted).run(*ends, verify=verify)


def linear(folder: Path, *verdicts: str) -> Repository:
    """Commits "c0", "c1", ...; tags of the same names."""
    made = make_repository(folder)
    for number, verdict in enumerate(verdicts):
        made.commit(f"c{number}", day=1 + number % 28, verdict=f"{verdict}\n")
        made.git("tag", f"c{number}")
    return made
