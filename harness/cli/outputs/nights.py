"""Of `nightly` and `history`."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from harness.errors.verdict import Verdict
from harness.history.model import Row
from harness.judge.evidence import Cause


class NightTry(TypedDict):
    verdict: Verdict
    time: str


class NightCase(TypedDict):
    """Of a case that did not run there is no more than its state."""

    case: str
    state: NotRequired[str]
    verdict: Verdict | None
    attempt: NotRequired[int]
    cause: NotRequired[Cause | None]
    tries: NotRequired[list[NightTry]]
    seconds: NotRequired[dict[str, float]]
    metrics: NotRequired[dict[str, int]]
    identity: NotRequired[dict[str, Any]]
    owner: NotRequired[str]
    quarantined: NotRequired[str]
    command: NotRequired[str]
    run_dir: NotRequired[str | None]


class NightRun(TypedDict):
    """``waiting``: where results wait that the history did not take; then there are no counts."""

    night: str
    suite: NotRequired[str]
    began: NotRequired[str]
    counts: NotRequired[dict[str, int]]
    excluded: NotRequired[list[dict[str, Any]]]
    cases: list[NightCase]
    waiting: NotRequired[str]
    bundles: NotRequired[list[str]]


class NightMerged(NightRun):
    missing_shards: list[Any]
    doubled: list[str]


class NightGroup(TypedDict):
    what: str
    why: str
    cases: list[str]


class NightPage(TypedDict):
    page: str
    night: str
    counts: dict[str, int]
    groups: list[NightGroup]


class CaseHistory(TypedDict):
    case: str
    runs: list[Row]


class FirstBad(TypedDict):
    case: str
    first_bad: Row | None
    last_good: NotRequired[Row | None]
    fixed: NotRequired[Row | None]
    bad_runs: NotRequired[int]
    unsure: NotRequired[Any]
    differences: NotRequired[list[dict[str, Any]]]
    figures: NotRequired[dict[str, list[Any]]]
    next: NotRequired[Any]


class FlakyCases(TypedDict):
    flaky: list[dict[str, Any]]


class HistoryExported(TypedDict):
    file: str
    lines: int


class HistoryImported(TypedDict):
    nights: int
    rows: int
    known: int


class HistoryPruned(TypedDict):
    nights: int
    rows: int
