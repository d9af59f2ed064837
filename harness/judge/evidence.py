"""What judging takes: what a run left, what it had to be, and how far its outputs are from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.config.budgets import MOST_TOLERANCE_LSB, Budgets
from harness.core.judgement import Blame
from harness.export.estimates import NpuCost
from harness.export.program import Delegation, OutputAccuracy, TensorSpec, Witnessed
from harness.judge.executorch_defects import ProgramDefect
from harness.judge.program_contents import ProgramDifference
from harness.judge.reference import Reference
from harness.log.events import Observation
from harness.sim.simulator import NpuUse
from harness.sim.transcript import Ending

if TYPE_CHECKING:  # imported where needed: equal bytes need no numpy
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class TensorDiff:
    """How far one output of one input set is from what was expected.

    ``worst_index`` is the logical index (NCHW for an image) of the largest difference;
    ``worst_lsb`` is that difference in units of the output's quantisation step, or None when
    the output has no scale (then ``worst_abs`` counts). Integer outputs have a step of 1.
    """

    output: str
    input_set: int
    exact: bool
    differing: int
    numel: int
    worst_index: tuple[int, ...] | None = None
    got: float | None = None
    expected: float | None = None
    worst_abs: float = 0.0
    worst_lsb: float | None = None

    def within(self, tolerance_lsb: float) -> bool:
        """Return True when no element is further than ``tolerance_lsb`` steps away.

        Without a scale only an exact match is within anything. The tenth of a step on top covers
        the rounding of scale * integer in float32, not a different integer."""
        allowed = tolerance_lsb + 0.1 * (tolerance_lsb > 0)
        return self.exact or (self.worst_lsb is not None and self.worst_lsb <= allowed)

    def describe(self) -> str:
        if self.exact:
            return f"{self.output} set {self.input_set}: equal"
        lsb = self.worst_lsb
        size = f"{self.worst_abs:.6g}" if lsb is None else f"{lsb:.4g} LSB"
        return (
            f"{self.output}{list(self.worst_index or ())} of input set {self.input_set} is off by "
            f"{size}: "
            f"got {self.got:.7g}, expected {self.expected:.7g} "
            f"({self.differing} of {self.numel} elements differ)"
        )


def compare(spec: TensorSpec, input_set: int, got: bytes, expected: bytes) -> TensorDiff:
    """Compare raw output bytes (memory order) of one input set.

    Equal bytes are equal. Otherwise elements are compared as numbers, so -0.0 equals 0.0, and
    a NaN on one side only is an infinite difference. Raises ValueError when either has the
    wrong number of bytes.
    """
    spec.check_size(got)
    spec.check_size(expected)
    equal = TensorDiff(spec.name, input_set, True, 0, spec.numel, worst_lsb=0.0)
    if got == expected:
        return equal
    import numpy as np

    a, b = spec.decode(got), spec.decode(expected)
    distance = _distance(a, b)
    differing = int(np.count_nonzero(distance))
    if differing == 0:
        return equal
    worst = np.unravel_index(int(np.argmax(distance)), distance.shape)
    worst_abs = float(distance[worst])
    step = spec.scale if np.issubdtype(a.dtype, np.floating) else 1.0
    return replace(
        equal,
        exact=False,
        differing=differing,
        worst_index=tuple(int(i) for i in worst),
        got=float(a[worst]),
        expected=float(b[worst]),
        worst_abs=worst_abs,
        worst_lsb=worst_abs / step if step else None,
    )


def _distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Element-wise |a - b| as float64; 0 where both are NaN, infinity where one is."""
    import numpy as np

    with np.errstate(invalid="ignore"):  # a signalling NaN, or infinity less infinity
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        distance: npt.NDArray[np.float64] = np.abs(wide_a - wide_b)
    nan_a, nan_b = np.isnan(wide_a), np.isnan(wide_b)
    distance[nan_a != nan_b] = np.inf
    distance[(nan_a & nan_b) | (wide_a == wide_b)] = 0.0
    return distance


@dataclass(frozen=True)
class ByDesign:
    """Outputs that differ from the expected ones exactly as known differences predict.

    ``names``: those of the known differences that the program meets. ``diffs``: how far these
    outputs are from those expected without the differences.
    """

    names: tuple[str, ...]
    diffs: tuple[TensorDiff, ...]


@dataclass(frozen=True)
class Outputs:
    """The outputs of the run, compared with the expected ones.

    ``missing`` names files that do not exist, ``misshapen`` files of the wrong size,
    ``undeclared`` outputs that the program does not have. ``sha256``: of every output by input set.
    ``diffs``: of those that could be compared, from the nearer definition where there are two
    (``by_design``).
    """

    diffs: tuple[TensorDiff, ...]
    missing: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    sha256: tuple[tuple[str, ...], ...] = ()
    by_design: ByDesign | None = None
    undeclared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Everything a run left that its verdict rests on.

    ``metrics`` are the figures that budgets bound. ``npu``: the jobs of an NPU model next to the
    simulator. ``differences``: what the simulator lacks of the board.
    ``mismatch_at``: where NPU and TOSA, or ExecuTorch and the model, first disagree, ``blame``:
    whose fault that is, when that was looked for.
    ``accuracy`` and what follows it: of the program, as its export found them.
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
    accuracy: tuple[OutputAccuracy, ...] = ()
    witness: Witnessed | None = None
    delegation: Delegation | None = None
    npu_cost: NpuCost | None = None


@dataclass(frozen=True)
class Expectation:
    """What the run had to be: which firmware, which program, how close, how large.

    ``build_id``: None for firmware that does not print one. ``prints_all_figures``: the runner
    prints every figure that a budget can limit. ``truth``: an accepted run whose outputs every
    firmware has to give for the program, instead of the oracle's.
    ``defects`` of ExecuTorch's that its own kernels or exporter would show in this program, and
    ``accepted_defects``, with which it may pass; ``defects_unread``: why that is not known.
    ``accept_command``: how to accept the case, where a run without an accepted one fails, else "".
    ``program_difference``: how the program differs from that of the accepted run, None if it is the
    same or there is none; with ``strict`` a difference is a failure. ``counts_instructions``: the
    clock of the run counts the CPU's. Raises ValueError for a tolerance out of range.
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
    accept_command: str = ""
    defects: tuple[ProgramDefect, ...] = ()
    accepted_defects: tuple[ProgramDefect, ...] = ()
    defects_unread: str = ""
    counts_instructions: bool = False

    @property
    def accepted(self) -> dict[str, int]:
        """The accepted figures."""
        return {} if self.reference is None else self.reference.accepted(self.toolchain)

    @property
    def other_program(self) -> Reference | None:
        """The accepted run of another program; nothing is compared with it."""
        known = (r for r in (self.reference, self.truth) if r is not None)
        return next((r for r in known if r.pte_sha256 not in ("", self.pte_sha256)), None)

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance_lsb <= MOST_TOLERANCE_LSB:
            raise ValueError(f"a tolerance of {self.tolerance_lsb} LSB")
