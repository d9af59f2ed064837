"""The answers of every verb's ``--json``, as types; JSON schemas are made from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from typing_extensions import NotRequired, TypedDict

from harness.bisect.history import Commit
from harness.build.zephyr.examine import Finding
from harness.cli.contract import DEPRECATED, VERSION, Deprecated
from harness.errors.verdict import Verdict
from harness.export.estimates import Cycles, Layer
from harness.formats.linker_map import Contributor, Orphan
from harness.history.model import Row
from harness.judge.compare import TensorDiff
from harness.judge.evidence import Cause
from harness.link.check import HookFinding
from harness.link.failure import CodePlace
from harness.localise.first_operator import FirstDifference

Counts = dict[str, int]
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class Error(TypedDict):
    """Of any verb that did not come to an answer: the exit status is 1, 2 or 3."""

    verdict: Verdict
    cause: Cause
    hint: str | None
    metrics: Counts
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
    metrics: Counts
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
    metrics: Counts
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
    metrics: Counts
    pmu: Counts
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


class Part(TypedDict):
    path: str
    bytes: int
    count: int


class Anatomy(TypedDict):
    file: str
    source: NotRequired[str]
    kind: str
    total: int
    unknown: int
    parts: list[Part]
    memory: list[Part]
    dropped: list[Part]
    notes: list[str]


class Anatomies(TypedDict):
    firmware: list[Anatomy]


class UsedFigure(TypedDict):
    name: str
    bytes: int
    of: int | None
    meaning: str


class Use(TypedDict):
    case: str
    run_dir: str
    figures: list[UsedFigure]


class Change(TypedDict):
    kind: Literal["added", "removed", "grew", "shrank", "renamed"]
    path: str
    old: int
    new: int
    delta: int
    old_path: str | None


class SizeDifference(TypedDict):
    old: str
    new: str
    old_total: int
    new_total: int
    delta: int
    parts: list[Change]
    memory: list[Change]
    why: list[str]


class GatedFigure(TypedDict):
    figure: str
    state: str
    measured: int | None
    accepted: int | None
    limit: int | None
    causes: list[str]


class GatedSubject(TypedDict):
    subject: str
    toolchain: str
    state: Literal["failed", "new", "ok"]
    figures: list[GatedFigure]
    accept: str | None


class Gate(TypedDict):
    failed: bool
    gates: list[GatedSubject]


class Pages(TypedDict):
    pages: list[str]


class LinkFailure(TypedDict):
    kind: str
    linker: str
    line: int
    text: str
    symbol: str | None
    demangled: str | None
    mangled: str | None
    region: str | None
    bytes: int | None
    sections: list[str]
    files: list[str]
    places: list[CodePlace]
    definitions: list[CodePlace]
    attribute: str | None
    binding: str | None
    contributors: list[Contributor]
    orphans: list[Orphan]
    cause_kind: str | None
    cause: str
    fix: str


class BuildStop(TypedDict):
    kind: str
    line: int
    text: str
    cause: str
    fix: str
    file: str | None
    at: int | None
    subject: str | None


class LinkExplained(TypedDict):
    source: str
    failed: bool
    linked: bool
    stopped: BuildStop | None
    output: str | None
    objects_read: bool
    failures: list[LinkFailure]


class LinkReduced(TypedDict):
    directory: str
    objects: list[str]
    stubs: list[str]
    inputs_before: int
    words: int
    message: str
    failure: LinkFailure


class LinkChecked(TypedDict):
    overridable: bool
    findings: list[HookFinding]


class NpuStats(TypedDict):
    npu: str
    operations: Counts
    macs: int
    moved: dict[str, Counts]
    memory: Counts
    arithmetic: str  # "compiled", or "numpy" and why


class NpuRun(NpuStats):
    outputs: list[str]


class NpuListing(TypedDict):
    npu: str
    lines: list[str]


class NpuEstimate(TypedDict):
    """What Vela expects; nothing of it is measured. ``clock`` in Hz."""

    npu: str
    system_config: str
    memory_mode: str
    clock: float
    cycles: Cycles
    macs: int
    memory: Counts
    moved: Counts
    layers: list[Layer]
    milliseconds: float
    utilisation: float


class NpuDelegates(TypedDict):
    delegates: list[NpuStats]
    estimates: NotRequired[list[NpuEstimate]]  # with --cycles


class NpuCompared(TypedDict):
    model: str
    estimates: list[NpuEstimate]


class Smaller(TypedDict):
    delegate: int
    input_set: int
    trouble: str
    operators: list[str]
    whole: int
    defect: str | None
    files: list[str]


class NpuReduced(TypedDict):
    reduced: Smaller | None


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
    summary: Counts
    on_target: int
    from_cache: int
    left_out: list[LeftOut]
    bit_exact: Counts
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
    metrics: NotRequired[Counts]
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
    counts: NotRequired[Counts]
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
    counts: Counts
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


class Gone(TypedDict):
    kind: str
    path: str
    bytes: int


class Pruned(TypedDict):
    dry_run: bool
    bounds: dict[str, Any]
    bytes: int
    gone: list[Gone]
    in_use: list[str]
    cache_bytes_left: int


class Target(TypedDict):
    name: str
    marker: str
    compile_target: str
    description: str
    simulators: dict[str, bool]
    memory_modes: list[str]
    lowerings: dict[str, str]
    differences: dict[str, list[str]]


class Targets(TypedDict):
    targets: list[Target]


class Model(TypedDict):
    name: str
    description: str


class NoModel(TypedDict):
    name: str
    reason: str


class Models(TypedDict):
    models: list[Model]
    unavailable: list[NoModel]


class Tool(TypedDict):
    name: str
    version: str | None
    path: str | None
    required: bool
    how_to_get: str
    note: str | None
    purpose: str


class State(TypedDict):
    """What is kept, in bytes and seconds."""

    path: str
    cache_max: int
    runs_keep_seconds: float
    kinds: list[dict[str, Any]]


class Doctor(TypedDict):
    tools: list[Tool]
    zephyr: list[Finding]
    missing: list[str]
    state: State


class Written(TypedDict):
    written: list[str]


class Download(TypedDict("Download", {"from": str})):  # a keyword of Python
    what: str
    why: str
    megabytes: float


class Workspace(TypedDict):
    workspace: str
    zephyr: str
    manifest: str
    downloads: list[Download]
    megabytes: float
    commands: list[str]
    activate: list[str]
    done: bool


class Completion(TypedDict):
    shell: str
    script: str
    file: str


class Schemas(TypedDict):
    schemas: dict[str, dict[str, Any]]


class Rows(TypedDict):
    """What `hil bench` measured, of the harness itself: not for others to build on."""

    rows: NotRequired[list[dict[str, Any]]]
    notes: NotRequired[list[str]]
    endings: NotRequired[list[dict[str, Any]]]
    sources: NotRequired[Any]
    written_for: NotRequired[Any]
    counts: NotRequired[Counts]
    mutants: NotRequired[list[dict[str, Any]]]


class Steps(TypedDict):
    steps: dict[str, dict[str, Any]] | list[str]


OUTPUTS: Final[dict[str, Any]] = {
    "run": Run,
    "exec": Exec,
    "why": Why,
    "judge": CaseRun | Log,
    "accept": Accepted | Measured,
    "bundle": Bundle,
    "replay": Replayed,
    "size show": Anatomy | Anatomies | Use,
    "size diff": SizeDifference,
    "gate": Gate,
    "open": Pages,
    "link explain": LinkExplained,
    "link reduce": LinkReduced,
    "link check": LinkChecked,
    "npu run": NpuRun,
    "npu disasm": NpuListing,
    "npu stats": NpuDelegates,
    "npu compare": NpuCompared,
    "npu reduce": NpuReduced,
    "standin install": Commands,
    "conformance": Suite | Suites,
    "bisect": Bisection,
    "nightly run": NightRun,
    "nightly merge": NightMerged,
    "nightly page": NightPage,
    "history show": CaseHistory,
    "history first-bad": FirstBad,
    "history flaky": FlakyCases,
    "history export": HistoryExported,
    "history import": HistoryImported,
    "history prune": HistoryPruned,
    "targets": Targets,
    "models": Models,
    "doctor": Doctor,
    "prune": Pruned,
    "init": Written,
    "zephyr init": Workspace,
    "completion": Completion,
    "schema": Schemas,
    "bench": Rows,
    "test": Steps,
}


def schema(verb: str, deprecated: Iterable[Deprecated] = DEPRECATED) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a verb's ``--json``."""
    made = TypeAdapter(OUTPUTS[verb] | Error).json_schema()
    made["$schema"] = _DIALECT
    made["title"] = f"hil {verb} --json, version {VERSION}"
    made["properties"] = {
        "version": {"const": VERSION},
        "deprecations": {"type": "array", "items": {"type": "string"}},
    }
    made["required"] = ["version"]
    fields = {row.field: row.instead for row in deprecated if row.verb == verb}
    for part in made["$defs"].values():
        for name, field in part.get("properties", {}).items():
            if name in fields:
                field |= {"deprecated": True, "description": fields[name]}
    return made
