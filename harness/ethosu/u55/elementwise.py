"""ELEMENTWISE of the U55 and U65.

Operand scaling as ``GenerateScalingForElementwise`` emits it (regor, Vela 5.1.0): mode OPA_32
or OPB_32 scales the named operand and shifts the other left by 19 bits (8-bit inputs) or 14
(16-bit) (inferred).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.common import (
    INT8,
    INT32,
    Array,
    Context,
    element_type,
    is_bricks,
    leading_zeros,
    ofm_shape,
)
from harness.ethosu.featuremap import FeatureMap, feature_map
from harness.ethosu.output_stage import UNIT, Scale, scale_exactly, single_scale
from harness.ethosu.plan import ElementwisePlan, OperandPlan, Prepared
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u55.stages import prepare_output

MODES = dict(enumerate(("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL")))
_SCALED = frozenset({"MUL", "ADD", "SUB", "ABS"})  # the others take no OFM_SCALE
_UNARY = frozenset({"ABS", "CLZ", "LRELU"})
_SCALE_16, _SCALE_OPA, _SCALE_OPB = range(3)

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Operand:
    """A feature map, or the scalar when there is none."""

    source: FeatureMap | None
    scalar: int
    zero_point: int

    def plan(self, scale: Scale) -> OperandPlan:
        return OperandPlan(self.source, self.scalar, self.zero_point, scale)

    def read(self, context: Context) -> Integers:
        if self.source is None:
            return np.full((1, 1, 1), self.scalar - self.zero_point, np.int64)
        result: Integers = self.source.read(context.memory).astype(np.int64) - self.zero_point
        return result


def prepare_elementwise(operation: Operation, registers: Registers) -> Prepared:
    code = operation.parameter & 63
    if MODES.get(code, "LRELU") == "LRELU":
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", code)
    mode, shape = MODES[code], ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    first = Operand(_map(registers, "IFM", shape), 0, registers.signed16("IFM_ZERO_POINT"))
    second = None if mode in _UNARY else _second(registers, shape)
    reverse = second is not None and bool(registers.bits("IFM2_BROADCAST", 6))
    combine = _combiner(mode, registers, element_type(registers, "IFM_PRECISION", 2))
    output = prepare_output(registers, shape)
    global_scale = bool(registers.bits("OFM_PRECISION", 8))
    if global_scale != (mode in _SCALED):
        raise registers.unsupported("OFM_PRECISION.scale_mode", int(global_scale), f"in {mode}")
    scale = UNIT
    if mode in _SCALED:
        value = registers["OFM_SCALE"]
        scale = single_scale(value & 0xFFFFFFFF, value >> 32 & 63)

    def run(context: Context) -> None:
        left = first.read(context)
        if second is None:
            result = combine(left, left)
        else:
            right = second.read(context)
            result = combine(right, left) if reverse else combine(left, right)
        result = np.broadcast_to(result, shape)
        limit = max(-float(result.min()), float(result.max()))
        output.store(context, result, limit, scale, None)

    scales = _operand_scales(mode, registers, element_type(registers, "IFM_PRECISION", 2))
    if second is None:
        left, right = first.plan(scales[0]), None
    else:
        operands = (second, first) if reverse else (first, second)
        left, right = operands[0].plan(scales[0]), operands[1].plan(scales[1])
    return Prepared(run, ElementwisePlan(mode, left, right, scale, output.plan()))


def _operand_scales(mode: str, registers: Registers, dtype: np.dtype[Any]) -> tuple[Scale, Scale]:
    """Of the left and the right operand, as ``_sum_combiner`` scales them."""
    if mode not in ("ADD", "SUB"):
        return UNIT, UNIT
    scaling, opa = registers.bits("IFM_PRECISION", 8, 2), registers["OPA_SCALE"]
    factor = opa & 0xFFFFFFFF
    if scaling == _SCALE_16:
        return single_scale(factor, 0), single_scale(registers["OPB_SCALE"] & 0xFFFF, 0)
    scaled = single_scale(factor, opa >> 32 & 63)
    shifted = single_scale(1 << (19 if dtype == INT8 else 14), 0)
    return (scaled, shifted) if scaling == _SCALE_OPA else (shifted, scaled)


def _map(registers: Registers, prefix: str, shape: tuple[int, int, int]) -> FeatureMap:
    dtype = element_type(registers, f"{prefix}_PRECISION", 2)
    if dtype.itemsize > 4:
        raise registers.unsupported(f"{prefix}_PRECISION", dtype)
    bricks = is_bricks(registers, f"{prefix}_PRECISION")
    return feature_map(registers, prefix, shape, dtype, bricks)


def _second(registers: Registers, shape: tuple[int, int, int]) -> Operand:
    zero_point = registers.signed16("IFM2_ZERO_POINT")
    broadcast = registers["IFM2_BROADCAST"]
    if broadcast >> 7 & 1:
        return Operand(None, registers.signed16("IFM2_SCALAR"), zero_point)
    height, width, depth = (1 if broadcast >> bit & 1 else size for bit, size in enumerate(shape))
    return Operand(_map(registers, "IFM2", (height, width, depth)), 0, zero_point)


def _combiner(
    mode: str, registers: Registers, dtype: np.dtype[Any]
) -> Callable[[Integers, Integers], Array]:
    if mode in ("ADD", "SUB"):
        return _sum_combiner(mode, registers, dtype)
    if mode == "SHR":
        return _shift_right(registers)
    simple: dict[str, Callable[[Integers, Integers], Array]] = {
        "MUL": np.multiply,
        "MIN": np.minimum,
        "MAX": np.maximum,
        "ABS": lambda a, _: np.abs(a),
        "CLZ": lambda a, _: leading_zeros(a),
        "SHL": lambda a, b: (a << b).astype(np.int32).astype(np.int64),
    }
    return simple[mode]


def _sum_combiner(
    mode: str, registers: Registers, dtype: np.dtype[Any]
) -> Callable[[Integers, Integers], Array]:
    scaling = registers.bits("IFM_PRECISION", 8, 2)
    opa = registers["OPA_SCALE"]
    factor_a, factor_b = opa & 0xFFFFFFFF, registers["OPB_SCALE"] & 0xFFFF
    sign = -1 if mode == "SUB" else 1
    if scaling == _SCALE_16:
        return lambda a, b: a * factor_a + sign * b * factor_b
    if scaling not in (_SCALE_OPA, _SCALE_OPB):
        raise registers.unsupported("IFM_PRECISION.scale_mode", scaling)
    scale = single_scale(factor_a, opa >> 32 & 63)
    rounding = registers.bits("IFM_PRECISION", 14, 2)
    if rounding != 2 and not scale.is_unit:
        raise registers.unsupported("IFM_PRECISION.round_mode", rounding)
    if dtype == INT32:
        raise registers.unsupported("IFM_PRECISION", dtype, "with OPA_32 or OPB_32")
    shift = 19 if dtype == INT8 else 14
    if scaling == _SCALE_OPA:
        return lambda a, b: scale_exactly(a, scale) + sign * (b << shift)
    return lambda a, b: (a << shift) + sign * scale_exactly(b, scale)


def _shift_right(registers: Registers) -> Callable[[Integers, Integers], Array]:
    """OFM rounding: NATURAL adds the half that the shift would drop."""
    rounding = registers.bits("OFM_PRECISION", 14, 2)
    if rounding == 2:

        def shift(a: Integers, b: Integers) -> Integers:
            return scale_exactly(a, Scale(np.ones_like(b), b))

        return shift
    raise registers.unsupported("OFM_PRECISION.round_mode", rounding, "in SHR")
