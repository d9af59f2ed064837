"""What judging takes: what a run left, and what it had to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.config.budget import MOST_TOLERANCE_LSB, Budgets
from harness.core.judgement import Blame
from harness.judge.compare import TensorDiff
from harness.judge.program_contents import ProgramDifference
from harness.judge.reference import Reference
from harness.log import Observation
from harness.sim.transcript import NpuUse
from harness.system.process import Stop
from harness.system.quota import Excess


@dataclass(frozen=True)
class Ending:
    """How the simulator's process ended.

    ``exit_status`` is None when a signal ended it, and when it is not known.
    ``native``: the process was the runner itself, no simulator. ``where``: what the CPU was doing
    when a limit ended the run.
    ``excess``: what the guest wrote too much of. ``console_complete`` is False when the console
    was still open after the end, so that its rest is not known.
    ``console_bytes``: how many it had; None when it was not counted.
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

    ``metrics`` are the figures that budgets bound. ``npu``: the jobs of an NPU model beside the
    simulator. ``differences``: what the simulator lacks of the board.
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

    ``build_id`` is None for firmware that does not print one; ``prints_all_figures``: the runner
    does, of those that a budget can limit. ``truth``: an accepted run whose
    outputs every firmware has to give for the program, in place of the oracle's.
    ``program_difference``: what the program is against the one of the accepted run, None where it
    is that one or there is none; with ``strict`` that is a failure. Raises ValueError for a
    tolerance that nobody can ask for.
    """

    build_id: str | None
    pte_unchanged: bool
    pte_sha256: str
    toolchain: str
    tolerance_lsb: float
    reference: Reference | None
    budgets: Budgets = field(default_factory=Budgets)
    prints_all_figures: bool = True
    truth: Reference | None = None
    program_difference: ProgramDifference | None = None
    strict: bool = False

    @property
    def other_program(self) -> Reference | None:
        """The accepted run that nothing is compared with, as it was of another program."""
        known = (r for r in (self.reference, self.truth) if r is not None)
        return next((r for r in known if r.pte_sha256 not in ("", self.pte_sha256)), None)

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance_lsb <= MOST_TOLERANCE_LSB:
            raise ValueError(f"a tolerance of {self.tolerance_lsb} LSB")
