"""The record of one case's run: ``record.json`` in the run directory, what reports read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.case.case import Case
from harness.errors import HarnessError, UsageError
from harness.judge.reference import from_fields
from harness.judge.run import Cause, Ending, Expectation, Verdict
from harness.simulate.transcript import NpuUse, npu_use

SCHEMA = 1
RECORD = "record.json"


@dataclass(frozen=True)
class SimulatorFacts:
    """Which simulator gave the result, and whether it could touch anything else."""

    name: str
    version: str
    confined: bool
    unconfined_reason: str | None
    argv: tuple[str, ...]
    environment: dict[str, str]
    eula: str | None = None  # how the user said that an FVP's licence is accepted
    differences: tuple[str, ...] = ()  # what of the board it does not have


@dataclass(frozen=True)
class RunRecord:
    """Everything about one case's run, as plain data.

    ``metrics`` are the figures budgets are held against: bytes and ticks, by name.
    ``static_metrics`` is the part of them that does not come from the console (ELF, ``.pte``),
    kept so that the run can be judged again offline. ``op_ticks`` maps an operator to its calls
    and ticks in the first input set, when the run was profiled. ``run_dir`` is None when the
    case ended before a simulator was started.
    """

    case: Case
    time: str
    verdict: Verdict
    metrics: dict[str, int] = field(default_factory=dict)
    static_metrics: dict[str, int] = field(default_factory=dict)
    worst_lsb: float | None = None
    sets: int = 0
    output_sha256: tuple[tuple[str, ...], ...] = ()
    op_ticks: dict[str, tuple[int, int]] = field(default_factory=dict)
    run_dir: str | None = None
    simulator: SimulatorFacts | None = None
    npu: NpuUse | None = None  # what a model of one beside the simulator was asked for
    mismatch_at: str | None = None  # where NPU and TOSA first disagree
    ending: Ending | None = None
    expectation: Expectation | None = None
    program: dict[str, Any] = field(default_factory=dict)
    firmware: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    schema: int = SCHEMA

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """What ``--json`` shows of a case."""
        cause = self.verdict.cause
        return {
            "case": self.case.id,
            "verdict": self.verdict.name,
            "cause": None if cause is None else asdict(cause),
            "notes": list(self.verdict.notes),
            "metrics": self.metrics,
            "worst_lsb": self.worst_lsb,
            "input_sets": self.sets,
            "simulator": None if self.simulator is None else self.simulator.name,
            "differences": [] if self.simulator is None else list(self.simulator.differences),
            "oracles": {
                "expected": self.program.get("oracle"),
                "others": self.program.get("oracles", []),
            },
            "run_dir": self.run_dir,
        }

    def save(self) -> None:
        """Write ``record.json`` into the run directory, atomically."""
        if self.run_dir is None:
            return
        text = json.dumps(self.to_fields(), indent=1, sort_keys=True) + "\n"
        temporary = Path(self.run_dir) / f".{RECORD}.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(Path(self.run_dir) / RECORD)


def failed_record(case: Case, time: str, error: HarnessError) -> RunRecord:
    """The record of a case that an error ended before its program ran."""
    text = error.message if error.hint is None else f"{error.message}; {error.hint}"
    cause = Cause(error.kind, text, None, dict(error.facts) or None)
    return RunRecord(case, time, Verdict(error.verdict, cause))


def load_record(run_dir: Path) -> RunRecord:
    """The record in a run directory. Raises UsageError when there is none that can be read."""
    path = run_dir / RECORD
    try:
        fields = json.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(
            f"{run_dir} is not a run directory: it has no {RECORD}",
            hint="run directories are under .hil/runs",
        ) from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
        raise UsageError(f"{path} has another format than this version reads (schema {SCHEMA})")
    try:
        return _from_fields(fields)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} is not a run record: {error!r}") from error


def _from_fields(fields: Mapping[str, Any]) -> RunRecord:
    verdict, expectation = fields["verdict"], fields["expectation"]
    cause = None if verdict["cause"] is None else Cause(**verdict["cause"])
    simulator, ending = fields["simulator"], fields["ending"]
    if expectation is not None:
        reference = expectation["reference"]
        expectation = Expectation(
            **{**expectation, "reference": None if reference is None else from_fields(reference)}
        )
    return RunRecord(
        **{
            **fields,
            "case": Case(**fields["case"]),
            "verdict": Verdict(verdict["name"], cause, tuple(verdict["notes"])),
            "output_sha256": tuple(map(tuple, fields["output_sha256"])),
            "op_ticks": {k: (int(v[0]), int(v[1])) for k, v in fields["op_ticks"].items()},
            "simulator": None if simulator is None else _simulator(simulator),
            "npu": None if fields.get("npu") is None else npu_use(fields["npu"]),
            "ending": None if ending is None else Ending(**ending),
            "expectation": expectation,
        }
    )


def _simulator(fields: Mapping[str, Any]) -> SimulatorFacts:
    lists = ("argv", "differences")
    return SimulatorFacts(**{**fields, **{n: tuple(fields.get(n, ())) for n in lists}})
