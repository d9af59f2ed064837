"""Of verbs that run a case, judge one again, or keep one."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from harness.errors.verdict import Verdict
from harness.judge.compare import TensorDiff
from harness.judge.evidence import Cause
from harness.localise.first_operator import FirstDifference


class Error(TypedDict):
    """Of any verb that did not come to an answer: the exit status is 1, 2 or 3."""

    verdict: Verdict
    cause: Cause
    hint: str | None
    metrics: dict[str, int]
    run_dir: None


class FirmwareUsed(TypedDict):
    source: str
    checkout: dict[str, Any] | None


class Differential(TypedDict):
    agree: int
    of: int
    tensors: list[TensorDiff]
    first: FirstDifference | None
    by_design: list[str]
    figures: dict[str, tuple[int | None, int | None]]
    operators: dict[str, tuple[int | None, int | None]]


class Oracles(TypedDict):
    expected: str | None
    others: list[dict[str, Any]]


class CaseRun(TypedDict):
    """One case; ``run_dir`` is null where it ended before its program ran."""

    case: str
    firmware: FirmwareUsed
    exporter: str | None
    verdict: Verdict
    verdict_text: str
    tolerance_lsb: float
    cause: Cause | None
    notes: list[str]
    metrics: dict[str, int]
    worst_lsb: float | None
    by_design: list[str]
    differential: Differential | None
    input_sets: int
    simulator: str | None
    differences: list[str]
    oracles: Oracles
    run_dir: str | None


class Run(CaseRun):
    """Of the case that speaks for all, the first that did not pass; and all of them."""

    cases: list[CaseRun]


class Execution(TypedDict):
    verdict: Verdict | None
    cause: Cause | None
    metrics: dict[str, int]
    firmware: str
    outputs: list[str]
    run_dir: str


class Exec(Execution):
    runs: NotRequired[list[Execution]]  # with --firmware both


class Why(CaseRun):
    time: str
    meaning: str
    do: str
    console: list[str]


class Progress(TypedDict):
    stage: str
    line: int


class LogOutput(TypedDict):
    index: int
    dtype: str
    elements: int
    whole: bool
    sizes: list[int] | None


class LogFile(TypedDict):
    name: str
    bytes: int
    whole: bool
    line: int


class Log(TypedDict):
    """Of a stranger's console log."""

    log: str
    verdict: Verdict
    cause: Cause | None
    notes: list[str]
    unknown: list[str]
    lines: int
    progress: list[Progress]
    metrics: dict[str, int]
    pmu: dict[str, int]
    bundle_passes: int
    outputs: list[LogOutput]
    files: list[LogFile]
    stop: dict[str, Any] | None
    versions: dict[str, str]


class _Reference(TypedDict):
    reference: str
    diff: str
    written: bool


class Measured(_Reference):
    case: str


class Accepted(CaseRun, _Reference):
    pass


class Bundle(TypedDict):
    bundle: str
    bytes: int
    case: str
    verdict: str
    simulator: str | None
    files: dict[str, dict[str, Any]]


class ThereToo(TypedDict):
    verdict: Verdict
    cause: Any


class Replayed(CaseRun):
    same: bool
    there: ThereToo
    differing_outputs: list[Any]
    differing_metrics: dict[str, list[Any]]
    simulator_versions: list[Any]
