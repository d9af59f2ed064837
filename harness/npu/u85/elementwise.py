"""ELEMENTWISE of the U85: every operand has a scale of its own, comparisons give 0 or -1.

DIV rounds toward zero, as TOSA's INTDIV (inferred); nobody has confirmed a divisor of zero.
"""

from __future__ import annotations

from harness.npu.descriptor import enumerator
from harness.npu.fields import ofm_shape
from harness.npu.job import UNARY, Job, largest_result
from harness.npu.scale import UNIT, Scale
from harness.npu.stream import Operation, Registers
from harness.npu.u85.maps import prepare_operand, prepare_output
from harness.npu.u85.scales import input_scale, ofm_rounding, ofm_scale, require_rounding

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
_INPUT_SCALED = frozenset({"ADD", "SUB", "MIN", "MAX"})


def prepare_elementwise(operation: Operation, registers: Registers) -> Job:
    mode = MODES.get(operation.parameter & 63)
    if mode is None:
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", operation.parameter & 63)
    shape = ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    scales = _input_scales(mode, registers)
    first = prepare_operand(registers, "IFM", shape, registers["IFM_BROADCAST"] & 15, scales[0])
    second = None
    if mode not in UNARY:
        broadcast = registers["IFM2_BROADCAST"] & 15
        second = prepare_operand(registers, "IFM2", shape, broadcast, scales[1])
    output = prepare_output(registers, shape)
    halves = True
    if mode == "SHR":  # OFM_SCALE only has its rounding
        halves = require_rounding(registers, "OFM_SCALE", ofm_rounding(registers))
    bits = 8 * first.dtype.itemsize
    return Job(
        kind="kElementwise",
        offset=registers.offset,
        combine=enumerator(mode),
        bits=bits,
        halves=halves,
        first=first,
        second=second,
        output=output,
        limit=largest_result(mode, first, second, bits),
        scaling=UNIT if mode == "SHR" else ofm_scale(registers),
    )


def _input_scales(mode: str, registers: Registers) -> tuple[Scale, Scale]:
    if mode in _INPUT_SCALED:
        return input_scale(registers, "IFM_SCALE"), input_scale(registers, "IFM2_SCALE")
    names = ("IFM_SCALE",) if mode in UNARY else ("IFM_SCALE", "IFM2_SCALE")
    for name in names:
        if not input_scale(registers, name).is_unit:
            raise registers.unsupported(name, registers[name], f"in {mode}")
    return UNIT, UNIT
