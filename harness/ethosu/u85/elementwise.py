"""ELEMENTWISE of the U85: every operand has a scale of its own, comparisons give 0 or -1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.common import Array, Context, leading_zeros, ofm_shape
from harness.ethosu.output_stage import UNIT, Scale, scale_exactly
from harness.ethosu.plan import ElementwisePlan, Prepared
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u85.stages import (
    Source,
    input_scale,
    ofm_rounding,
    ofm_scale,
    prepare_output,
    prepare_source,
    require_rounding,
)

MODES = {
    0: "MUL",
    1: "ADD",
    2: "SUB",
    3: "MIN",
    4: "MAX",
    6: "ABS",
    7: "CLZ",
    8: "SHR",
    9: "SHL",
    10: "LSR",
    11: "DIV",
    16: "CMP_EQ",
    17: "CMP_NE",
    18: "CMP_GE",
    19: "CMP_GT",
    33: "AND",
    34: "OR",
    35: "XOR",
    36: "NOT",
    42: "AND_NOT",
}
_UNARY = frozenset({"ABS", "CLZ", "NOT"})
_INPUT_SCALED = frozenset({"ADD", "SUB", "MIN", "MAX"})
Integers = NDArray[np.int64]
Combine = Callable[[Integers, Integers], Array]

_SIMPLE: dict[str, Combine] = {
    "MUL": np.multiply,
    "ADD": np.add,
    "SUB": np.subtract,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "ABS": lambda a, _: np.abs(a),
    "CLZ": lambda a, _: leading_zeros(a),
    "CMP_EQ": lambda a, b: -(a == b).astype(np.int64),
    "CMP_NE": lambda a, b: -(a != b).astype(np.int64),
    "CMP_GE": lambda a, b: -(a >= b).astype(np.int64),
    "CMP_GT": lambda a, b: -(a > b).astype(np.int64),
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "NOT": lambda a, _: np.invert(a),
    "AND_NOT": lambda a, b: a & ~b,
}


def prepare_elementwise(operation: Operation, registers: Registers) -> Prepared:
    mode = MODES.get(operation.parameter & 63)
    if mode is None:
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", operation.parameter & 63)
    shape = ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    first = prepare_source(registers, "IFM", shape, registers["IFM_BROADCAST"] & 15)
    second = None
    if mode not in _UNARY:
        second = prepare_source(registers, "IFM2", shape, registers["IFM2_BROADCAST"] & 15)
    output = prepare_output(registers, shape)
    scale = ofm_scale(registers) if mode != "SHR" else UNIT
    combine = _combiner(mode, registers, first)
    scales = _input_scales(mode, registers)

    def run(context: Context) -> None:
        left = _scaled(first.read_wide(context), scales[0])
        right = left if second is None else _scaled(second.read_wide(context), scales[1])
        result = np.broadcast_to(combine(left, right), shape)
        limit = max(-float(result.min()), float(result.max()))
        output.store(context, result, limit, scale, None)

    way_out, other = output.plan(shape), None if second is None else second.plan(scales[1])
    if way_out is None:
        return Prepared(run, chains=output.buffer)
    plan = ElementwisePlan(mode, first.plan(scales[0]), other, scale, way_out)
    return Prepared(run, plan, output.buffer)


def _scaled(values: Integers, scale: Scale) -> Integers:
    return scale_exactly(values, scale)


def _input_scales(mode: str, registers: Registers) -> tuple[Scale, Scale]:
    if mode in _INPUT_SCALED:
        return input_scale(registers, "IFM_SCALE"), input_scale(registers, "IFM2_SCALE")
    names = ("IFM_SCALE",) if mode in _UNARY else ("IFM_SCALE", "IFM2_SCALE")
    for name in names:
        if not input_scale(registers, name).is_unit:
            raise registers.unsupported(name, registers[name], f"in {mode}")
    return UNIT, UNIT


def _combiner(mode: str, registers: Registers, first: Source) -> Combine:
    if mode == "SHR":
        halves = require_rounding(registers, "OFM_SCALE", ofm_rounding(registers))

        def shift_right(a: Integers, b: Integers) -> Integers:
            return scale_exactly(a, Scale(np.ones_like(b), b, halves))

        return shift_right
    if mode == "DIV":
        return _division(registers)
    bits = 8 * first.dtype.itemsize
    if mode == "LSR":
        return lambda a, b: (a & ((1 << bits) - 1)) >> b
    if mode == "SHL":

        def shift_left(a: Integers, b: Integers) -> Integers:
            low = (a << b) & ((1 << bits) - 1)
            return low - ((low >> (bits - 1)) << bits)

        return shift_left
    return _SIMPLE[mode]


def _division(registers: Registers) -> Combine:
    """Toward zero, as TOSA's INTDIV (inferred); nobody has confirmed a divisor of zero."""

    def divide(a: Integers, b: Integers) -> Integers:
        if not b.all():
            raise registers.unsupported("IFM2", 0, "as a divisor")
        quotient: Integers = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
        return quotient

    return divide
