"""ELEMENTWISE of the U55 and U65.

Operand scaling as ``GenerateScalingForElementwise`` emits it (regor, Vela 5.1.0): mode OPA_32
or OPB_32 scales the named operand and shifts the other left by 19 bits (8-bit inputs) or 14
(16-bit) (inferred).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.npu.descriptor import enumerator
from harness.npu.feature_map import feature_map
from harness.npu.fields import element_type, is_bricks, ofm_shape
from harness.npu.job import INT8, INT32, UNARY, Job, Operand, largest_result
from harness.npu.scale import UNIT, Scale, single_scale
from harness.npu.stream import Operation, Registers
from harness.npu.u55.output import ofm_scale, prepare_output

MODES = dict(enumerate(("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL")))
_SCALED = frozenset({"MUL", "ADD", "SUB", "ABS"})  # the others take no OFM_SCALE
_SCALE_16, _SCALE_OPA, _SCALE_OPB = range(3)
_NATURAL = 2


def prepare_elementwise(operation: Operation, registers: Registers) -> Job:
    code = operation.parameter & 63
    if MODES.get(code, "LRELU") == "LRELU":
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", code)
    mode, shape = MODES[code], ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    scales = _operand_scales(mode, registers)
    first = _operand(registers, "IFM", shape, shape, scales[0])
    second = None
    if mode not in UNARY:
        swapped = bool(registers.bits("IFM2_BROADCAST", 6))
        first = _operand(registers, "IFM", shape, shape, scales[1 if swapped else 0])
        second = _second(registers, shape, scales[0 if swapped else 1])
        if swapped:
            first, second = second, first
    output = prepare_output(registers, shape)
    global_scale = bool(registers.bits("OFM_PRECISION", 8))
    if global_scale != (mode in _SCALED):
        raise registers.unsupported("OFM_PRECISION.scale_mode", int(global_scale), f"in {mode}")
    return Job(
        kind="kElementwise",
        offset=registers.offset,
        combine=enumerator(mode),
        first=first,
        second=second,
        output=output,
        limit=largest_result(mode, first, second, 32),
        scaling=ofm_scale(registers) if mode in _SCALED else UNIT,
    )


def _operand_scales(mode: str, registers: Registers) -> tuple[Scale, Scale]:
    """Of the left and the right operand. SHR rounds as the OFM."""
    if mode == "SHR":
        rounding = registers.bits("OFM_PRECISION", 14, 2)
        if rounding != _NATURAL:
            raise registers.unsupported("OFM_PRECISION.round_mode", rounding, "in SHR")
        return UNIT, UNIT
    if mode not in ("ADD", "SUB"):
        return UNIT, UNIT
    scaling, opa = registers.bits("IFM_PRECISION", 8, 2), registers["OPA_SCALE"]
    dtype = element_type(registers, "IFM_PRECISION", 2)
    factor, opb = opa & 0xFFFFFFFF, registers["OPB_SCALE"] & 0xFFFF
    if scaling == _SCALE_16:
        return single_scale(factor, 0), single_scale(opb, 0)
    if scaling not in (_SCALE_OPA, _SCALE_OPB):
        raise registers.unsupported("IFM_PRECISION.scale_mode", scaling)
    scaled = single_scale(factor, opa >> 32 & 63)
    rounding = registers.bits("IFM_PRECISION", 14, 2)
    if rounding != _NATURAL and not scaled.is_unit:
        raise registers.unsupported("IFM_PRECISION.round_mode", rounding)
    if dtype == INT32:
        raise registers.unsupported("IFM_PRECISION", dtype, "with OPA_32 or OPB_32")
    shifted = single_scale(1 << (19 if dtype == INT8 else 14), 0)
    return (scaled, shifted) if scaling == _SCALE_OPA else (shifted, scaled)


def _operand(
    registers: Registers,
    prefix: str,
    shape: tuple[int, int, int],
    whole: tuple[int, int, int],
    scale: Scale,
) -> Operand:
    dtype: np.dtype[Any] = element_type(registers, f"{prefix}_PRECISION", 2)
    if dtype.itemsize > 4:
        raise registers.unsupported(f"{prefix}_PRECISION", dtype)
    bricks = is_bricks(registers, f"{prefix}_PRECISION")
    return Operand(
        what=prefix,
        map=feature_map(registers, prefix, shape, dtype, bricks),
        dtype=dtype,
        zero_point=registers.signed16(f"{prefix}_ZERO_POINT"),
        shape=whole,
        scaling=scale,
    )


def _second(registers: Registers, shape: tuple[int, int, int], scale: Scale) -> Operand:
    broadcast = registers["IFM2_BROADCAST"]
    if broadcast >> 7 & 1:
        zero_point, scalar = (
            registers.signed16("IFM2_ZERO_POINT"),
            registers.signed16("IFM2_SCALAR"),
        )
        return Operand("IFM2", None, INT32, zero_point, shape, scalar=scalar, scaling=scale)
    height, width, depth = (1 if broadcast >> bit & 1 else size for bit, size in enumerate(shape))
    return _operand(registers, "IFM2", (height, width, depth), shape, scale)
