"""What judging takes and gives: what a run left, what it had to be, and the judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.build.source import FirmwareSource
from harness.errors.verdict import Verdict
from harness.judge.cause import Blame as Blame
from harness.judge.cause import Cause as Cause
from harness.judge.cause import Reason as Reason
from harness.judge.compare import TensorDiff
from harness.judge.reference import Reference
from harness.observe import Observation
from harness.simulate.transcript import NpuUse
from harness.system.process import Stop
from harness.system.quota import Excess
from harness.target.budget import MOST_TOLERANCE_LSB, Budgets

Finding = tuple[Verdict, Cause] | None  # what is not PASS, and why; None: nothing is wrong


@dataclass(frozen=True)
class Judgement:
    """The verdict, its first cause, and what has to be said beside it."""

    verdict: Verdict
    cause: Cause | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict.passed


def judgement(finding: Finding, notes: tuple[str, ...]) -> Judgement:
    """PASS, when nothing is wrong."""
    if finding is None:
        return Judgement(Verdict.PASS, None, notes)
    return Judgement(finding[0], finding[1], notes)


@dataclass(frozen=True)
class Ending:
    """How the simulator's process ended.

    ``exit_status`` is None when a signal ended it, and without one when nobody was told.
    ``native``: the process was the runner itself, no simulator. ``where``: what the CPU was doing
    when a limit ended the run.
    ``excess``: what the guest wrote too much of. ``console_complete`` is False when somebody kept
    the console open after the end, so that what was still to come is not known.
    ``console_bytes``: how many it had; None when nobody counted.
    """

    stop: Stop
    exit_status: int | None
    signal: int | None
    seconds: float
    native: bool = False
    where: dict[str, Any] | None = None
    console_complete: bool = True
    console_bytes: int | None = None
    excess: Excess | None = None


@dataclass(frozen=True)
class ByDesign:
    """Outputs that are not the expected ones, but exactly those that named differences make.

    ``names`` of the differences that the program meets; ``diffs`` of these outputs from what was
    expected without them.
    """

    names: tuple[str, ...]
    diffs: tuple[TensorDiff, ...]


@dataclass(frozen=True)
class Outputs:
    """What the run wrote, against what was expected.

    ``missing`` names files that do not exist, ``misshapen`` files of the wrong size. ``sha256``
    of every output by input set; ``diffs`` for those that could be compared, from the definition
    that they are nearer to where there are two (``by_design``).
    """

    diffs: tuple[TensorDiff, ...]
    missing: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    sha256: tuple[tuple[str, ...], ...] = ()
    by_design: ByDesign | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything a run left that its verdict rests on.

    ``metrics`` are the figures budgets are held against. ``npu``: what a model of one beside the
    simulator was asked for. ``differences``: what of the board the simulator does not have.
    ``mismatch_at``: where NPU and TOSA first disagree, ``blame``: whose fault that is, when that
    was looked for.
    ``console_bytes``: how many the kept console has; None when there is no such file.
    """

    observation: Observation
    ending: Ending
    outputs: Outputs
    metrics: Mapping[str, int]
    npu: NpuUse | None = None
    differences: tuple[str, ...] = ()
    mismatch_at: str | None = None
    blame: Blame | None = None
    console_bytes: int | None = None


@dataclass(frozen=True)
class Expectation:
    """What the run had to be: which firmware, which program, how close, how large.

    ``build_id`` is None for firmware that does not print one. ``truth``: an accepted run whose
    outputs every firmware has to give for the program, in place of the oracle's. Raises ValueError
    for a tolerance that nobody can ask for.
    """

    build_id: str | None
    pte_unchanged: bool
    pte_sha256: str
    toolchain: str
    tolerance_lsb: float
    reference: Reference | None
    budgets: Budgets = field(default_factory=Budgets)
    source: FirmwareSource = FirmwareSource.BUNDLED
    truth: Reference | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance_lsb <= MOST_TOLERANCE_LSB:
            raise ValueError(f"a tolerance of {self.tolerance_lsb} LSB")
