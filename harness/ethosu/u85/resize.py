"""RESIZE of the U85. "(inferred)" marks what only the TOSA reference model confirms."""

from __future__ import annotations

import numpy as np

from harness.ethosu.common import Context, largest_input, ofm_shape
from harness.ethosu.output_stage import Integers, Scale
from harness.ethosu.plan import AxisPlan, Prepared, ResizePlan
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u85.stages import checked_scale, ofm_rounding, prepare_output, prepare_source

_BILINEAR, _REPLICATE, _NEAREST = range(3)
Axis = tuple[Integers, Integers, int, int]  # of _positions


def prepare_resize(operation: Operation, registers: Registers) -> Prepared:
    """TOSA's arithmetic times 2**16, which OFM_SCALE takes off (inferred)."""
    mode = operation.parameter & 3
    if mode not in (_BILINEAR, _NEAREST):
        raise registers.unsupported("RESIZE.resize_mode", mode)
    shape = ofm_shape(registers)
    height, width = registers["KERNEL_HEIGHT_M1"] + 1, registers["KERNEL_WIDTH_M1"] + 1
    source = prepare_source(registers, "IFM", (height, width, shape[2]))
    axes = _axis(registers, "Y"), _axis(registers, "X")
    rows, columns = _positions(axes[0], shape[0], height), _positions(axes[1], shape[1], width)
    output, scale = prepare_output(registers, shape), _rest_of_scale(registers)
    limit = largest_input(source.dtype, source.zero_point)
    if mode == _BILINEAR:
        limit *= rows[2] * columns[2]

    def run(context: Context) -> None:
        values = source.read_wide(context)
        sums = (_bilinear if mode == _BILINEAR else _nearest)(values, rows, columns)
        output.store(context, sums, limit, scale, None)

    way_out, ifm = output.plan(shape), source.source
    if way_out is None or ifm is None:
        return Prepared(run, chains=output.buffer)
    bilinear = mode == _BILINEAR
    plan = ResizePlan(bilinear, ifm, source.zero_point, *axes, limit, scale, way_out)
    return Prepared(run, plan, output.buffer)


def _rest_of_scale(registers: Registers) -> Scale:
    """OFM_SCALE without the 16 bits, whose removal is exact in every rounding."""
    value = registers["OFM_SCALE"]
    multiplier, shift = value & 0x7FFFFFFF, value >> 32 & 63
    if multiplier != 1 or shift < 16:
        raise registers.unsupported("OFM_SCALE", (multiplier, shift), "in RESIZE")
    rest = value - (16 << 32)
    return checked_scale(registers, "OFM_SCALE", multiplier, rest, ofm_rounding(registers))


def _axis(registers: Registers, axis: str) -> AxisPlan:
    n = registers[f"RESIZE_{axis}_SCALE_N_M1"] + 1
    step = registers[f"RESIZE_{axis}"]
    whole, rest = step >> 32 & 15, step & 0x7FF
    offset = registers[f"RESIZE_{axis}_OFFSET"] & 0xFFF
    offset -= (offset & 0x800) << 1
    return AxisPlan(n, whole * n + rest, offset)


def _positions(axis: AxisPlan, count: int, size: int) -> Axis:
    """For each output index the whole and the fractional input position, n, and the size."""
    place = np.arange(count, dtype=np.int64) * axis.step + axis.offset
    return place // axis.n, place % axis.n, axis.n, size


def _bilinear(values: Integers, rows: Axis, columns: Axis) -> Integers:
    def blend(source: Integers, axis: int, places: Axis) -> Integers:
        index, part, n, size = places
        shape = [1, 1, 1]
        shape[axis] = len(index)
        weight = part.reshape(shape)
        near = source.take(np.clip(index, 0, size - 1), axis)
        far = source.take(np.clip(index + 1, 0, size - 1), axis)
        result: Integers = near * (n - weight) + far * weight
        return result

    return blend(blend(values, 0, rows), 1, columns)


def _nearest(values: Integers, rows: Axis, columns: Axis) -> Integers:
    def chosen(places: Axis) -> Integers:
        index, part, n, size = places
        return np.clip(index + (2 * part >= n), 0, size - 1)

    return values.take(chosen(rows), 0).take(chosen(columns), 1)
