"""What an operation is, as plain values: what a compiled job of it is made from.

The engines make these beside their own steps in numpy, after the same checks. An operation
without a plan, or whose plan the compiled arithmetic has no job for, is done by its step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accumulate import Window
from harness.ethosu.codec import WeightDecoder
from harness.ethosu.common import Step
from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.output_stage import UNIT, Scale

Span = tuple[int, int, int]  # region, address, length


@dataclass(frozen=True)
class OutputPlan:
    """``table``: byte of the internal memory (negative: from its end) and size of one table.

    ``shape`` is before the transpose to ``axes``; ``reverse`` is 1 more than a stored axis.
    ``rounds``: whether a scale that is not 1 is confirmed.
    """

    ofm: FeatureMap
    shape: tuple[int, int, int]
    index_type: np.dtype[Any]
    zero_point: int
    clamp: tuple[int, int] | None
    table: tuple[int, int] | None
    axes: tuple[int, int, int] = (0, 1, 2)
    reverse: int = 0
    rounds: bool = True


@dataclass(frozen=True)
class OperandPlan:
    """``source``, the U85's chaining ``buffer``, or a scalar; ``scale`` is of elementwise
    operations."""

    source: FeatureMap | None
    scalar: int
    zero_point: int
    scale: Scale = UNIT
    buffer: int | None = None


@dataclass(frozen=True)
class Parameters:
    """Weights as (ofm, y, x, ifm), scale and bias."""

    weights: NDArray[np.int16]
    scale: Scale
    bias: NDArray[np.int64] | None


class ParameterReader(Protocol):
    """Where weights and scales lie, and what they are. ``layout``: all else that decides it."""

    @property
    def layout(self) -> Hashable: ...

    @property
    def spans(self) -> Sequence[Span]: ...

    @property
    def weight_spans(self) -> int:
        """How many of them are weights; scales come after them."""
        ...

    def decode(self, codec: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        """``contents``: of each span."""
        ...


@dataclass(frozen=True)
class ConvolutionPlan:
    depthwise: bool
    ifm: FeatureMap
    zero_point: int
    upscale: int
    window: Window
    accumulator_bits: int
    parameters: ParameterReader
    output: OutputPlan
    macs: int


@dataclass(frozen=True)
class MatrixPlan:
    """Of ``ifm`` and the positions of ``other``, which are the output channels. ``limit`` bounds
    the sums."""

    ifm: FeatureMap
    zero_point: int
    other: FeatureMap
    other_zero_point: int
    window: Window
    limit: float
    scale: Scale
    output: OutputPlan
    macs: int


@dataclass(frozen=True)
class PoolPlan:
    """``limit`` bounds the sums. ``accumulator_bits``: of sums that may not need more."""

    mode: str
    ifm: FeatureMap
    zero_point: int
    upscale: int
    window: Window
    limit: float
    scale: Scale
    output: OutputPlan
    accumulator_bits: int


@dataclass(frozen=True)
class ElementwisePlan:
    mode: str
    first: OperandPlan
    second: OperandPlan | None
    scale: Scale
    output: OutputPlan


@dataclass(frozen=True)
class AxisPlan:
    """Output index i is at (i * step + offset) / n of the input."""

    n: int
    step: int
    offset: int


@dataclass(frozen=True)
class ResizePlan:
    """``limit`` bounds the sums."""

    bilinear: bool
    ifm: FeatureMap
    zero_point: int
    rows: AxisPlan
    columns: AxisPlan
    limit: float
    scale: Scale
    output: OutputPlan


@dataclass(frozen=True)
class CopyPlan:
    """One DMA of so many bytes; a target without a region is the internal memory."""

    source: Span
    target_region: int | None
    target: int


MappedPlan = ConvolutionPlan | MatrixPlan | PoolPlan | ElementwisePlan | ResizePlan
Plan = MappedPlan | CopyPlan


def inputs_of(plan: MappedPlan) -> tuple[FeatureMap | None, FeatureMap | None]:
    """What is in memory of the operands."""
    if isinstance(plan, MatrixPlan):
        return plan.ifm, plan.other
    if not isinstance(plan, ElementwisePlan):
        return plan.ifm, None
    return plan.first.source, None if plan.second is None else plan.second.source


def maps_of(plan: MappedPlan) -> list[FeatureMap]:
    """The result's, and those of what is in memory of the operands."""
    return [plan.output.ofm, *(one for one in inputs_of(plan) if one is not None)]


def reads_chained(plan: MappedPlan) -> bool:
    """Whether an operand is one of the U85's chaining buffers."""
    if not isinstance(plan, ElementwisePlan):
        return False
    operands = [plan.first] if plan.second is None else [plan.first, plan.second]
    return any(operand.buffer is not None for operand in operands)


@dataclass(frozen=True)
class Prepared:
    """One operation: as it is done in numpy, and as a plan where there is one. ``chains``: the
    chaining buffer that it writes."""

    step: Step
    plan: Plan | None = None
    chains: int | None = None
