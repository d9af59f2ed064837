"""Repositories whose commits say how a case ends there, and a judge that reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.config.case import Case
from harness.core.judgement import Cause, Judgement
from harness.core.verdict import Verdict
from harness.run.bisect import Bisection, BisectStep, search
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.system.git import Worktree
from tests.system.repository import Repository, make_repository

CASE = Case("corstone-300-m55", "ds_cnn")


def record_of(content: str) -> RunRecord:
    """``content`` is the verdict, and after a space the kind of its cause."""
    name, _, kind = content.strip().partition(" ")
    verdict = Verdict[name]
    cause = None if verdict.passed else Cause(kind or "planted", f"what {name} is about")
    return RunRecord(CASE, "2026-01-01T00:00:00+00:00", Judgement(verdict, cause))


class ReadVerdict(BisectStep):
    """Reads the commit's file "verdict" in place of running the case; "crash" is a defect of the
    step."""

    def run_case(self) -> RunRecord:
        content = (self.worktree.folder / "verdict").read_text()
        if content.startswith("crash"):
            raise ValueError("a defect of ours")
        return record_of(content)


@dataclass(frozen=True)
class Searched:
    repository: Repository
    worktree: Worktree
    progress: list[str] = field(default_factory=list)

    def run(self, good: str, bad: str, *counted_bad: Verdict, fixed: bool = False) -> Bisection:
        step = ReadVerdict(self.worktree, CASE, RunOptions(), frozenset(counted_bad), fixed)
        return search(step, good, bad, self.progress.append)


def linear(folder: Path, *verdicts: str) -> Repository:
    """Commits "c0", "c1", ...; tags of the same names."""
    made = make_repository(folder)
    for number, verdict in enumerate(verdicts):
        made.commit(f"c{number}", day=1 + number % 28, verdict=f"{verdict}\n")
        made.git("tag", f"c{number}")
    return made
