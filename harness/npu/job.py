"""Jobs: operations of the NPU as plain values, with the names of ``kernel/jobs.h``.

``u55`` and ``u85`` check the registers of an operation and make a job from them. A table in
``kernel_library`` maps attributes whose shape differs from the C++ structure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.npu.feature_map import FeatureMap
from harness.npu.kernel_library import WeightDecoder
from harness.npu.scale import UNIT, Scale

INT8, INT16, INT32, INT64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
UNBOUNDED = 1 << 63  # a bound of sums that any 64 bits meet


@dataclass(frozen=True)
class Window:
    """How a kernel moves: sizes in elements (y, x), padding in (up-scaled) input elements."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right
    output: tuple[int, int]
    upscale: int = 0

    @property
    def needed(self) -> tuple[int, int]:
        """Input rows and columns that the window reads, without padding."""
        top, left, bottom, right = self.pads
        height = (self.output[0] - 1) * self.stride[0] + self._reach(0) - top - bottom
        width = (self.output[1] - 1) * self.stride[1] + self._reach(1) - left - right
        return height, width

    def _reach(self, axis: int) -> int:
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    @property
    def elements(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def is_pointwise(self) -> bool:
        return self.kernel == (1, 1) and self.stride == (1, 1) and not any(self.pads)

    def valid_counts(self) -> NDArray[np.int64]:
        """For each output position the number of window elements that are not padding."""
        per_axis = []
        for axis in (0, 1):
            first = np.arange(self.output[axis]) * self.stride[axis] - self.pads[axis]
            valid = np.zeros(self.output[axis], np.int64)
            for element in range(self.kernel[axis]):
                places = first + element * self.dilation[axis]
                valid += (places >= 0) & (places < self.needed[axis])
            per_axis.append(valid)
        counts: NDArray[np.int64] = np.multiply.outer(per_axis[0], per_axis[1])
        return counts


@dataclass(frozen=True)
class Operand:
    """A feature map, a chaining ``buffer`` of the U85, or a scalar.

    ``shape``: of the map; the content of a buffer must have it, or be broadcast to it in an
    elementwise operation. ``scaling``: of an elementwise operation."""

    what: str
    map: FeatureMap | None
    dtype: np.dtype[Any]
    zero_point: int
    shape: tuple[int, int, int]
    scalar: int = 0
    buffer: int | None = None
    scaling: Scale = UNIT

    @property
    def multiplier(self) -> int:
        return self.scaling.multiplier.item()

    @property
    def half(self) -> int:
        return self.scaling.half.item()

    @property
    def shift(self) -> int:
        return self.scaling.shift.item()

    @property
    def limit(self) -> int:
        """The largest absolute value minus the zero point."""
        if self.map is None and self.buffer is None:
            return abs(self.scalar - self.zero_point)
        limits = np.iinfo(self.dtype if self.map is None else self.map.dtype)
        return max(int(limits.max) - self.zero_point, self.zero_point - int(limits.min))

    @property
    def scaled_limit(self) -> int:
        return (self.limit * abs(self.multiplier) + self.half >> self.shift) + 1


UNARY = frozenset({"ABS", "CLZ", "NOT"})


def largest_result(mode: str, first: Operand, second: Operand | None, bits: int) -> int:
    """Return the largest absolute result of an elementwise operation before OFM_SCALE."""
    left = first.scaled_limit
    right = 0 if second is None else second.scaled_limit
    if mode == "MUL":
        return left * right
    if mode in ("AND", "OR", "XOR", "AND_NOT"):
        return 1 << max(left, right).bit_length()
    if mode in ("SHL", "LSR"):
        return 1 << bits
    return 32 if mode == "CLZ" else left + right + 1


@dataclass(frozen=True)
class LookUp:
    """``at``: byte of the internal memory (negative: from its end) of the table ``number``."""

    number: int
    at: int
    size: int


@dataclass(frozen=True)
class Output:
    """Where a job's output goes.

    ``map``: None if nothing is stored. ``shape``: before the transpose to ``axis``. ``reverse``:
    the reversed axis plus 1, or 0. ``index_type``: of the table's index. ``rounding``: a mode that
    is only confirmed with a scale of 1, else ""."""

    map: FeatureMap | None
    shape: tuple[int, int, int]
    index_type: np.dtype[Any]
    zero_point: int
    clamp: tuple[int, int] | None
    look_up: LookUp | None
    axis: tuple[int, int, int] = (0, 1, 2)
    reverse: int = 0
    rounding: str = ""

    @property
    def clamped(self) -> bool:
        return self.clamp is not None

    @property
    def table(self) -> str:
        if self.look_up is None:
            return "kNone"
        return "kIndex8" if self.index_type == INT8 else "kIndex16"


@dataclass(frozen=True)
class Accumulators:
    """The contents of the accumulators before a job, and whether they stay.

    ``initial``: kZero, kKept (those of the last operation) or kMap (``source``). ``keeps``: for the
    next operation."""

    bits: int
    initial: str = "kZero"
    source: Operand | None = None
    keeps: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether they start at 0 and are not kept."""
        return self.initial == "kZero" and not self.keeps

    @property
    def limit(self) -> int:
        return 1 << (self.bits - 1)


Span = tuple[int, int, int]  # region, address, length


@dataclass(frozen=True)
class Parameters:
    """Weights as (ofm, y, x, ifm) where there are any, scale and bias."""

    weights: NDArray[np.int16] | None
    scale: Scale
    bias: NDArray[np.int64] | None


@dataclass(frozen=True)
class ParameterReader:
    """Reads weights and scales.

    ``spans``: the places of weights (the first ``weight_spans``) and scales. ``decode`` takes the
    content of each; it raises AccessError, Unsupported. ``layout``: with the contents, decides the
    result."""

    layout: Hashable
    spans: Sequence[Span]
    weight_spans: int
    decode: Callable[[WeightDecoder, Sequence[bytes]], Parameters]

    @property
    def named_spans(self) -> list[tuple[str, Span]]:
        kinds = ("WEIGHT" if n < self.weight_spans else "SCALE" for n in range(len(self.spans)))
        return list(zip(kinds, self.spans, strict=True))


@dataclass(frozen=True)
class Copy:
    """A DMA of planes of rows.

    ``*_row``, ``*_plane``: bytes from one start to the next. ``internal``: the target is the NPU's
    own memory. ``indexed``: kNone, kGather or kScatter."""

    length: int
    rows: int
    planes: int
    source_region: int
    source: int
    source_row: int
    source_plane: int
    internal: bool
    target_region: int
    target: int
    target_row: int
    target_plane: int
    indexed: str = "kNone"
    index_region: int = 0
    indices: int = 0
    largest_index: int = 0

    @property
    def total(self) -> int:
        return self.length * self.rows * self.planes


@dataclass(frozen=True)
class Axis:
    """Output index i is at (i * step + offset) / n of the input."""

    n: int
    step: int
    offset: int


@dataclass(frozen=True)
class Resize:
    bilinear: bool
    y: Axis
    x: Axis


@dataclass(frozen=True)
class Job:
    """An operation, ready to run.

    ``limit``: a bound of the absolute sums before bias and scale; a convolution's follows from its
    weights. ``scaling``: of all channels, unless the ``parameters`` have it. ``offset``: the
    operation's byte in the stream. ``bits``, ``halves`` (whether SHR rounds up): of shifts."""

    kind: str
    offset: int
    first: Operand | None = None
    second: Operand | None = None
    window: Window | None = None
    output: Output | None = None
    pooling: str = "kMax"
    combine: str = "kMul"
    bits: int = 32
    halves: bool = True
    accumulators: Accumulators | None = None
    resize: Resize | None = None
    copy: Copy | None = None
    limit: int = 0
    scaling: Scale = UNIT
    parameters: ParameterReader | None = None
    macs: int = 0

    @property
    def operands(self) -> list[Operand]:
        """The maps, buffers and scalars that the job reads."""
        source = None if self.accumulators is None else self.accumulators.source
        return [one for one in (self.first, self.second, source) if one is not None]

    @property
    def maps(self) -> list[FeatureMap]:
        """The maps in memory: those it reads, then the one it writes."""
        written = None if self.output is None else self.output.map
        found = [*(operand.map for operand in self.operands), written]
        return [one for one in found if one is not None]
