"""Plans as the compiled arithmetic reads them.

A plan gets a job only where the job gives the same bits as the step in numpy: sums are bounded
here, from the weights and types at hand, before any of them is computed.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate
from harness.ethosu.accumulate import Window
from harness.ethosu.common import INT8, INT16, largest_input
from harness.ethosu.featuremap import CHAINED, CHAINS, FeatureMap, Tile
from harness.ethosu.job_fields import (
    JobFields,
    MapFields,
    OperandFields,
    OutputFields,
    SpanFields,
    WindowFields,
)
from harness.ethosu.job_scales import EXACT, Keep, fill_scale
from harness.ethosu.output_stage import Scale
from harness.ethosu.plan import (
    ConvolutionPlan,
    CopyPlan,
    ElementwisePlan,
    MatrixPlan,
    OperandPlan,
    OutputPlan,
    Parameters,
    Plan,
    PoolPlan,
    ResizePlan,
    Span,
    maps_of,
)

_NONE, _CONVOLUTION, _DEPTHWISE, _POOL, _ELEMENTWISE, _COPY, _RESIZE, _MATRIX = range(8)
_REDUCE = {"AVERAGE": 0, "SUM": 0, "MAX": 1, "MIN": 2, "REDUCE_SUM": 3}
_COMBINE = (
    *("ADD", "SUB", "MUL", "MIN", "MAX", "ABS", "CLZ"),
    *("CMP_EQ", "CMP_NE", "CMP_GE", "CMP_GT", "AND", "OR", "XOR", "NOT", "AND_NOT"),
)
_OF_ONE = frozenset({"ABS", "CLZ", "NOT"})


def fill(job: JobFields, plan: Plan, keep: Keep, internal: int, parts: int) -> bool:
    """Whether the plan has a job. ``internal``: bytes of that memory. A convolution is not ready
    before it is bound to its weights."""
    if isinstance(plan, CopyPlan):
        job.kind = _COPY
        _span(job.source, plan.source)
        region = -1 if plan.target_region is None else plan.target_region
        _span(job.target, (region, plan.target, plan.source[2]))
        return True
    if not _has_output(plan.output) or not all(map(_is_addressed, maps_of(plan))):
        return False
    _output(job.output, plan.output, internal)
    if isinstance(plan, ElementwisePlan):
        return _elementwise(job, plan, keep)
    _map(job.first.map, plan.ifm)
    job.first.zero_point = plan.zero_point
    if isinstance(plan, ResizePlan):
        return _resize(job, plan, keep)
    job.parts = parts
    if isinstance(plan, MatrixPlan):
        return _matrix(job, plan, keep)
    _window(job.window, plan.window, plan.upscale)
    if isinstance(plan, PoolPlan):
        return _pool(job, plan, keep)
    return _fits_shorts(plan.ifm, plan.zero_point)


def _fits_shorts(ifm: FeatureMap, zero_point: int) -> bool:
    """What is read of it, less the zero point."""
    if ifm.dtype == INT8:
        return largest_input(INT8, zero_point) < 1 << 15
    return ifm.dtype == INT16 and zero_point == 0


@dataclass(frozen=True)
class PackedWeights:
    """``largest_sum``: of absolute weights of one output channel."""

    packed: NDArray[np.int16]
    largest_sum: int
    scale: Scale
    bias: NDArray[np.int64] | None


def pack(library: ctypes.CDLL, found: Parameters, depthwise: bool) -> PackedWeights:
    weights = found.weights
    if not _is_dense_but_for_rows(weights):
        weights = np.ascontiguousarray(weights)
    ofm, height, width, ifm = weights.shape
    shape = int(depthwise), ofm, height * width, ifm
    packed = np.empty(library.hil_npu_packed(*shape), np.int16)
    pitch = weights.strides[2] // weights.itemsize
    given = shape[0], weights.ctypes.data, pitch, *shape[1:], packed.ctypes.data
    return PackedWeights(packed, library.hil_npu_pack(*given), found.scale, found.bias)


def _is_dense_but_for_rows(weights: NDArray[np.int16]) -> bool:
    """Whether only the input channels have more room than they need."""
    _, height, width, _ = weights.shape
    ofm, y, x, channel = weights.strides
    return channel == weights.itemsize and y == width * x and ofm == height * y


def bind(job: JobFields, plan: ConvolutionPlan, weights: PackedWeights, keep: Keep) -> bool:
    """A job that cannot be bound stays without a kind."""
    job.kind = _NONE
    limit = weights.largest_sum * largest_input(plan.ifm.dtype, plan.zero_point)
    if limit >= 1 << (plan.accumulator_bits - 1):
        return False
    job.wide = int(limit >= 1 << 31)
    if job.wide and (plan.ifm.dtype == INT8 or weights.largest_sum >= 1 << 23):
        return False
    if not fill_scale(job.scale, plan.output, weights.scale, weights.bias, limit, keep):
        return False
    job.weights = keep(weights.packed)
    job.kind = _DEPTHWISE if plan.depthwise else _CONVOLUTION
    return True


def expect(
    job: JobFields, spans: Sequence[Span], contents: Sequence[NDArray[np.uint8]], keep: Keep
) -> None:
    """What the weights and scales were that the job is bound to."""
    job.spans = len(spans)
    for fields, span, content in zip(job.span, spans, contents, strict=False):
        _span(fields, span)
        fields.expected = keep(content)


def _span(fields: SpanFields, span: Span) -> None:
    fields.region, fields.address, fields.length = span


def _map(fields: MapFields, source: FeatureMap) -> None:
    fields.region, fields.bytes, fields.bricks = (
        source.region,
        source.dtype.itemsize,
        int(source.bricks),
    )
    fields.height, fields.width, fields.depth = source.shape
    fields.stride_y, fields.stride_x, fields.stride_c = source.strides
    fields.tiles = len(source.tiles)
    for place, tile in zip(fields.tile, source.tiles, strict=False):
        place.y, place.x, place.height, place.width, place.base = (
            tile.y,
            tile.x,
            tile.height,
            tile.width,
            tile.base,
        )


def _window(fields: WindowFields, window: Window, upscale: int) -> None:
    fields.kernel_y, fields.kernel_x = window.kernel
    fields.stride_y, fields.stride_x = window.stride
    fields.dilation_y, fields.dilation_x = window.dilation
    fields.top, fields.left, fields.bottom, fields.right = window.pads
    fields.needed_y, fields.needed_x = window.needed
    fields.upscale = upscale


def _is_addressed(source: FeatureMap) -> bool:
    """A stream's regions have numbers below those of the chaining buffers."""
    return source.region < CHAINS or source.what == CHAINED


def _has_output(plan: OutputPlan) -> bool:
    return plan.ofm.dtype.itemsize <= 4 and no_place_twice(plan.ofm)


def no_place_twice(ofm: FeatureMap) -> bool:
    """Whether every element has bytes of its own, so that the order of writing is all one."""
    spans = sorted(_reach(ofm, tile) for tile in ofm.tiles)
    apart = all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    return apart and all(_nested(ofm, tile) for tile in ofm.tiles)


def _steps(ofm: FeatureMap, tile: Tile) -> tuple[int, list[tuple[int, int]]]:
    """Bytes that lie together, and (stride, count) of what is made of them."""
    size = ofm.dtype.itemsize
    stride_y, stride_x, stride_c = ofm.strides
    if not ofm.bricks:
        return ofm.shape[2] * size, [(stride_y, tile.height), (stride_x, tile.width)]
    bricks = -(-ofm.shape[2] // 16)
    return 16 * size * tile.width, [(stride_y, tile.height), (stride_c, bricks)]


def _reach(ofm: FeatureMap, tile: Tile) -> tuple[int, int]:
    together, steps = _steps(ofm, tile)
    ends = [(count - 1) * stride for stride, count in steps]
    low = tile.base + sum(min(end, 0) for end in ends)
    return low, tile.base + sum(max(end, 0) for end in ends) + together


def _nested(ofm: FeatureMap, tile: Tile) -> bool:
    reach, steps = _steps(ofm, tile)
    for stride, count in sorted((abs(stride), count) for stride, count in steps if count > 1):
        if stride < reach:
            return False
        reach += stride * (count - 1)
    return True


def _output(fields: OutputFields, plan: OutputPlan, internal: int) -> None:
    _map(fields.map, plan.ofm)
    fields.height, fields.width, fields.depth = plan.shape
    fields.index_bytes, fields.zero_point = plan.index_type.itemsize, plan.zero_point
    if plan.clamp is not None:
        fields.clamped, (fields.low, fields.high) = 1, plan.clamp
    if plan.table is not None:
        at, size = plan.table
        fields.table = 1 if plan.index_type == INT8 else 2
        fields.table_at, fields.table_size = (at + internal if at < 0 else at), size
    fields.axis[:] = plan.axes
    fields.reverse = plan.reverse


def _pool(job: JobFields, plan: PoolPlan, keep: Keep) -> bool:
    wide, most = plan.limit >= 1 << 31, 1 << (plan.accumulator_bits - 1)
    if plan.limit >= EXACT or plan.ifm.dtype.itemsize > 4:
        return False
    extreme = plan.mode in ("MAX", "MIN")
    if extreme and any(plan.window.pads) and not accumulate.valid_counts(plan.window).all():
        return False
    if not fill_scale(job.scale, plan.output, plan.scale, None, min(plan.limit, most), keep):
        return False
    job.kind, job.operation = _POOL, _REDUCE[plan.mode]
    job.wide, job.most = int(wide), most if plan.limit >= most else 0
    return True


def _matrix(job: JobFields, plan: MatrixPlan, keep: Keep) -> bool:
    _window(job.window, plan.window, 0)
    job.wide = int(plan.limit >= 1 << 31)
    if job.wide and plan.ifm.dtype == INT8:
        return False
    shorts = (plan.ifm, plan.zero_point), (plan.other, plan.other_zero_point)
    if not all(_fits_shorts(*given) for given in shorts):
        return False
    if not fill_scale(job.scale, plan.output, plan.scale, None, plan.limit, keep):
        return False
    _map(job.second.map, plan.other)
    job.second.zero_point, job.kind = plan.other_zero_point, _MATRIX
    return True


def _resize(job: JobFields, plan: ResizePlan, keep: Keep) -> bool:
    if plan.limit >= EXACT or plan.ifm.dtype.itemsize > 4:
        return False
    if not fill_scale(job.scale, plan.output, plan.scale, None, plan.limit, keep):
        return False
    job.kind, job.wide, job.resize.bilinear = _RESIZE, int(plan.limit >= 1 << 31), plan.bilinear
    for fields, axis in ((job.resize.y, plan.rows), (job.resize.x, plan.columns)):
        fields.n, fields.step, fields.offset = axis.n, axis.step, axis.offset
    return True


def _elementwise(job: JobFields, plan: ElementwisePlan, keep: Keep) -> bool:
    operands = [plan.first] if plan.second is None else [plan.first, plan.second]
    if not all(_spreads(operand, plan.output.shape) for operand in operands):
        return False
    if plan.mode not in _COMBINE or (plan.mode in _OF_ONE) != (plan.second is None):
        return False
    bounds = []
    for fields, operand in zip((job.first, job.second), operands, strict=False):
        bound = _operand(fields, operand)
        if bound is None:
            return False
        bounds.append(bound)
    limit = _largest_result(plan.mode, bounds)
    if limit >= 1 << 63 or not fill_scale(job.scale, plan.output, plan.scale, None, limit, keep):
        return False
    job.kind, job.operation = _ELEMENTWISE, _COMBINE.index(plan.mode)
    return True


def _largest_result(mode: str, bounds: Sequence[int]) -> int:
    if mode == "MUL":
        return bounds[0] * bounds[1]
    if mode in ("AND", "OR", "XOR", "AND_NOT"):
        return 1 << max(bounds).bit_length()
    return 32 if mode == "CLZ" else sum(bounds) + 1


def _spreads(operand: OperandPlan, shape: tuple[int, int, int]) -> bool:
    if operand.buffer is not None:
        return False  # of which nobody knows here what it holds
    if operand.source is None:
        return True
    return all(n in (1, whole) for n, whole in zip(operand.source.shape, shape, strict=True))


def _operand(fields: OperandFields, operand: OperandPlan) -> int | None:
    """The largest absolute value after its scale."""
    if operand.source is None:
        bound = abs(operand.scalar - operand.zero_point)
    elif operand.source.dtype.itemsize > 4:
        return None
    else:
        _map(fields.map, operand.source)
        bound = int(largest_input(operand.source.dtype, operand.zero_point))
    fields.scalar, fields.zero_point = operand.scalar, operand.zero_point
    multiplier, shift = operand.scale.multiplier.item(), operand.scale.shift.item()
    half = int(operand.scale.half.item())
    if bound * abs(multiplier) + half >= EXACT:
        return None
    fields.multiplier, fields.half, fields.shift = multiplier, half, shift
    return (bound * abs(multiplier) + half >> shift) + 1
