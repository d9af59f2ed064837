"""Of `standin install`, `conformance` and `bisect`."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from harness.bisect.history import Commit
from harness.errors.verdict import Verdict
from harness.judge.evidence import Cause


class Commands(TypedDict):
    commands: list[str]


class SuiteTest(TypedDict):
    id: str
    result: str
    cause: str
    seconds: float
    simulated: bool
    bit_exact: bool | None
    apart: Any


class MissingOperator(TypedDict):
    operator: str
    tests: list[str]


class LeftOut(TypedDict):
    why: str
    tests: int


class Suite(TypedDict):
    suite: str
    simulator: str
    elf: str
    firmware: str
    exporter: str
    seconds: float
    summary: dict[str, int]
    on_target: int
    from_cache: int
    left_out: list[LeftOut]
    bit_exact: dict[str, int]
    note: str
    tests: list[SuiteTest]
    operators_missing: list[MissingOperator]
    complaints: list[str]
    log: str


class Suites(TypedDict):
    runs: list[Suite]


class BisectTrial(TypedDict):
    commit: Commit
    mark: str
    verdict: Verdict
    verdict_text: str
    cause: Cause | None
    notes: list[str]
    run_dir: str | None
    mismatch_at: str | None


class Bisection(TypedDict):
    case: str
    first_bad: BisectTrial | None
    candidates: list[Commit]
    good: Commit
    bad: Commit
    trials: list[BisectTrial]
    notes: list[str]
    command: str
