"""The record of one case's run, which reports read (``harness.run.directory`` stores it)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.config.case import Case
from harness.config.schema import Data
from harness.core.errors import HarnessError
from harness.core.judgement import Blame, Cause, Judgement
from harness.core.verdict import ExitCode, Verdict, together
from harness.export.estimates import NpuCost
from harness.export.exporter import ExporterFacts, exporter_label
from harness.export.program import Delegation, OutputAccuracy, Program, Witnessed
from harness.firmware.names import BUNDLED
from harness.firmware.source import CheckoutFacts, Firmware, label
from harness.judge.cost import OnCpu, ProfileRow, on_cpu, profile
from harness.judge.evidence import Evidence, Expectation, TensorDiff
from harness.judge.first_difference import FirstDifference
from harness.judge.rules import worst_lsb
from harness.log.events import Observation, OpTicks
from harness.sim.simulator import NpuUse
from harness.sim.transcript import Ending, SimulatorFacts
from harness.system.git import git, is_work_tree
from harness.system.git import revision as git_revision
from harness.system.paths import import_root
from harness.system.unexpected import as_harness_error

SCHEMA = 2
_SHOWN = 12  # characters of a commit
_EDITS = 8


@dataclass(frozen=True)
class ProgramFacts:
    """Which program ran, and who computed what it had to give.

    ``oracles``: how far others are from the expected outputs, as ``OracleAgreement`` has it.
    ``exporter``: the checkout that exported it, None for the installed wheel. ``input_sha256``
    of every input of every set; none in a record of before they were kept. ``not_reproducible``:
    why another machine may export other bytes, "" if none does. ``accuracy``, ``witness``,
    ``delegation``, ``npu_cost``, ``layers``: as in Program.
    """

    pte: str
    sha256: str
    oracle: str
    oracles: tuple[dict[str, Any], ...] = ()
    operators: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    exporter: ExporterFacts | None = None
    input_sha256: tuple[tuple[str, ...], ...] = ()
    not_reproducible: str = ""
    accuracy: tuple[OutputAccuracy, ...] = ()
    witness: Witnessed | None = None
    delegation: Delegation | None = None
    npu_cost: NpuCost | None = None
    layers: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, pte: Path, pte_sha256: str) -> ProgramFacts:
        return cls(
            str(pte),
            pte_sha256,
            program.oracle_name,
            tuple(asdict(agreement) for agreement in program.oracles),
            program.operators,
            program.versions,
            program.exporter,
            program.input_digests(),
            program.not_reproducible,
            program.accuracy,
            program.witness,
            program.delegation,
            program.npu_cost,
            program.layers,
        )


@dataclass(frozen=True)
class FirmwareFacts:
    """Which firmware ran.

    ``checkout``: what was built, where it was not our own runner. ``sha256``: of the ELF.
    ``sources``: digest of our runner's files, "" in records from before it was kept."""

    elf: str
    key: str
    build_id: str
    toolchain: str
    checkout: CheckoutFacts | None = None
    sha256: str = ""
    sources: str = ""

    @classmethod
    def of(cls, firmware: Firmware) -> FirmwareFacts:
        return cls(
            str(firmware.elf),
            firmware.key,
            firmware.build_id,
            firmware.toolchain_id,
            firmware.checkout,
            firmware.elf_sha256,
            firmware.sources,
        )


Pairs = Mapping[str, tuple[int | None, int | None]]


@dataclass(frozen=True)
class Differential:
    """The differences of two runs of a case, of two runners or on two simulators.

    ``between``: their names. ``tensors``: each output of each input set, the second's against the
    first's. ``first``: where the first input set that differs begins to. ``figures`` by name, and
    instructions per operator: the first's and the second's, None where one has none."""

    tensors: tuple[TensorDiff, ...]
    first: FirstDifference | None
    by_design: tuple[str, ...]
    figures: Pairs
    operators: Pairs
    between: tuple[str, str] = ("bundled", "executorch")

    @property
    def agree(self) -> int:
        return sum(diff.exact for diff in self.tensors)

    def summary(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"agree": self.agree, "of": len(self.tensors), **asdict(self)}


@dataclass(frozen=True)
class RunRecord(Data):
    """Everything about one case's run, as plain data.

    ``metrics`` are the figures that budgets bound: bytes and ticks, by name.
    ``static_metrics`` is the part of them that does not come from the console (ELF, ``.pte``),
    kept so that the run can be judged again offline. ``op_ticks`` maps an operator to its calls
    and ticks in the first input set, if instructions were counted; ``first_ticks`` has each
    instruction of the program. ``run_dir``: None if the case ended before a simulator was
    started; then all facts of a run are empty. ``source``: whose firmware it was, or was to be.
    ``starts``: as in Transcript. ``options``: those of ``hil run`` that the other facts do not
    show. ``harness`` and ``host``: who judged, and where.
    """

    case: Case
    time: str
    judgement: Judgement
    metrics: dict[str, int] = field(default_factory=dict)
    static_metrics: dict[str, int] = field(default_factory=dict)
    worst_lsb: float | None = None
    sets: int = 0
    output_sha256: tuple[tuple[str, ...], ...] = ()
    by_design: tuple[str, ...] = ()  # named differences that the outputs show
    op_ticks: dict[str, tuple[int, int]] = field(default_factory=dict)
    first_ticks: tuple[OpTicks, ...] = ()
    run_dir: str | None = None
    simulator: SimulatorFacts | None = None
    npu: NpuUse | None = None  # what the NPU model next to the simulator was asked for
    mismatch_at: str | None = None  # where NPU and TOSA first disagree
    blame: Blame | None = None  # whose fault that is
    ending: Ending | None = None
    expectation: Expectation | None = None
    program: ProgramFacts | None = None
    firmware: FirmwareFacts | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    source: str = BUNDLED
    starts: tuple[int, ...] = (0,)
    options: tuple[str, ...] = ()
    differential: Differential | None = None  # against the bundled runner, when both ran
    wrong_use: bool = False  # what the user asked for, or the user's model, made no sense
    harness: str = ""
    host: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        """In order, so that no output is read twice, and from the beginning."""
        if self.starts[:1] != (0,) or list(self.starts) != sorted(self.starts):
            raise ValueError(f"the output of processes cannot begin at {self.starts}")

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.USAGE if self.wrong_use else self.verdict.exit_code

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def cause(self) -> Cause | None:
        return self.judgement.cause

    @property
    def notes(self) -> tuple[str, ...]:
        return self.judgement.notes

    @property
    def accuracy(self) -> tuple[OutputAccuracy, ...]:
        """The program's accuracy for each output; empty if it was not measured."""
        return () if self.program is None else self.program.accuracy

    @property
    def on_cpu(self) -> list[OnCpu]:
        """Operators that an NPU left to the CPU; empty without an NPU."""
        delegation = None if self.program is None else self.program.delegation
        return [] if delegation is None else on_cpu(delegation, self.first_ticks)

    @property
    def profile(self) -> list[ProfileRow]:
        """Nothing where no operator was counted or estimated."""
        facts = self.program
        if facts is None:
            return []
        return profile(self.first_ticks, facts.layers, facts.delegation, facts.npu_cost)

    @property
    def firmware_label(self) -> str:
        """ "executorch cff6f4dd"; "" for the bundled runner."""
        return label(self.source, None if self.firmware is None else self.firmware.checkout)

    @property
    def exporter_label(self) -> str:
        """ "checkout cff6f4dd32", "wheel 1.5.1"; "" for a case that ended before it ran."""
        if self.program is None:
            return ""
        return exporter_label(self.program.exporter, self.program.versions.get("executorch", ""))

    @property
    def title(self) -> str:
        """The case, and whose firmware it ran unless that was ours."""
        name = self.case.title
        return f"{name} [{self.firmware_label}]" if self.firmware_label else name

    @property
    def tolerance_lsb(self) -> float:
        """How far off the run was allowed to be; 0 for a case that ended before it ran."""
        return 0.0 if self.expectation is None else self.expectation.tolerance_lsb

    @property
    def verdict_text(self) -> str:
        """The verdict as it is shown: with the tolerance that it was reached with."""
        tolerance = f" (tolerance {self.tolerance_lsb:g} LSB)" if self.tolerance_lsb else ""
        return f"{self.verdict}{tolerance}"

    def with_evidence(self, evidence: Evidence, judgement: Judgement) -> RunRecord:
        """Return the record with everything that follows from what the run left."""
        outputs = evidence.outputs
        return replace(
            self,
            judgement=judgement,
            metrics=dict(evidence.metrics),
            worst_lsb=worst_lsb(outputs.diffs) if outputs.diffs else None,
            sets=len(outputs.sha256),
            output_sha256=outputs.sha256,
            by_design=() if outputs.by_design is None else outputs.by_design.names,
            op_ticks=_ticks_by_operator(evidence.observation),
            first_ticks=evidence.observation.first_ticks,
            mismatch_at=evidence.mismatch_at,
            blame=evidence.blame,
        )

    def summary(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints for a case."""
        checkout = self.firmware and self.firmware.checkout
        witness = self.program and self.program.witness
        cost = self.program and self.program.npu_cost
        return {
            "case": self.case.id,
            "firmware": {"source": self.source, "checkout": checkout and asdict(checkout)},
            "exporter": self.exporter_label or None,
            "verdict": self.verdict,
            "verdict_text": self.verdict_text,
            "tolerance_lsb": self.tolerance_lsb,
            "cause": None if self.cause is None else asdict(self.cause),
            "notes": list(self.notes),
            "metrics": self.metrics,
            "worst_lsb": self.worst_lsb,
            "by_design": list(self.by_design),
            "differential": None if self.differential is None else self.differential.summary(),
            "reproducible": None if self.program is None else not self.program.not_reproducible,
            "not_reproducible": None if self.program is None else self.program.not_reproducible,
            "input_sets": self.sets,
            "simulator": None if self.simulator is None else self.simulator.name,
            "differences": [] if self.simulator is None else list(self.simulator.differences),
            "oracles": {
                "expected": None if self.program is None else self.program.oracle,
                "others": [] if self.program is None else list(self.program.oracles),
            },
            "accuracy": [asdict(each) for each in self.accuracy],
            "witness": witness and asdict(witness),
            "npu_cost": cost and asdict(cost),
            "profile": [asdict(row) for row in self.profile],
            "on_cpu": [each.summary() for each in self.on_cpu],
            "run_dir": self.run_dir,
        }


def _ticks_by_operator(observation: Observation) -> dict[str, tuple[int, int]]:
    """Operator to (calls, ticks) in the first input set."""
    sums: dict[str, tuple[int, int]] = {}
    for entry in observation.op_ticks:
        if entry.input_set == 0:
            calls, ticks = sums.get(entry.operator, (0, 0))
            sums[entry.operator] = (calls + 1, ticks + entry.ticks)
    return sums


def failed_record(case: Case, error: BaseException, source: str = BUNDLED) -> RunRecord:
    """Return the record of a case that an error ended before its program ran."""
    failure = as_harness_error(error)
    joint = " " if failure.message.endswith(".") else "; "
    text = failure.message if failure.hint is None else f"{failure.message}{joint}{failure.hint}"
    cause = Cause(failure.kind, text, None, dict(failure.facts) or None)
    wrong = failure.exit_code is ExitCode.USAGE
    judgement = Judgement(failure.verdict, cause)
    return RunRecord(case, now(), judgement, source=source, wrong_use=wrong)


def exit_code(records: Iterable[RunRecord]) -> ExitCode:
    """Return the exit code of several cases; a case may also be a wrong use."""
    return together(r.exit_code for r in records if r.verdict is not Verdict.SKIPPED)


def now() -> str:
    """Return UTC in ISO 8601 with milliseconds, because nights and runs are sorted by it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def host() -> str:
    """ "name (x86_64)"."""
    machine = os.uname()
    return f"{machine.nodename} ({machine.machine})"


def harness_revision(root: Path | None = None) -> str:
    """Return the commit of the clone, or the version of an installation; "" when nobody can say."""
    root = root or import_root()
    try:
        if is_work_tree(root):  # it may be another user's: nothing of it is run
            return git(root, "-c", "safe.directory=*", "rev-parse", "HEAD")[:_SHOWN]
        return metadata.version("executorch-hil")
    except (HarnessError, metadata.PackageNotFoundError):
        return ""


def exact_harness_revision(root: Path | None = None) -> str:
    """Return the same, with a digest of a clone's edits. Raises what ``git.revision`` does."""
    root = root or import_root()
    if not is_work_tree(root):
        return harness_revision(root)
    found = git_revision(root)
    edits = f"+edits {found.changes[:_EDITS]}" if found.dirty else ""
    return found.commit[:_SHOWN] + edits
