"""RESIZE of the U85: TOSA's arithmetic times 2**16, which OFM_SCALE takes off (inferred)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.common import Context, Step, largest_input, ofm_shape
from harness.ethosu.output_stage import Scale
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u85.stages import checked_scale, ofm_rounding, prepare_output, prepare_source

_BILINEAR, _REPLICATE, _NEAREST = range(3)


def prepare_resize(operation: Operation, registers: Registers) -> Step:
    mode = operation.parameter & 3
    if mode not in (_BILINEAR, _NEAREST):
        raise registers.unsupported("RESIZE.resize_mode", mode)
    shape = ofm_shape(registers)
    height, width = registers["KERNEL_HEIGHT_M1"] + 1, registers["KERNEL_WIDTH_M1"] + 1
    source = prepare_source(registers, "IFM", (height, width, shape[2]))
    rows = _positions(registers, "Y", shape[0], height)
    columns = _positions(registers, "X", shape[1], width)
    output, scale = prepare_output(registers, shape), _rest_of_scale(registers)
    limit = largest_input(source.dtype, source.zero_point)
    if mode == _BILINEAR:
        limit *= rows[2] * columns[2]

    def run(context: Context) -> None:
        values = source.read_wide(context)
        sums = (_bilinear if mode == _BILINEAR else _nearest)(values, rows, columns)
        output.store(context, sums, limit, scale, None)

    return run


def _rest_of_scale(registers: Registers) -> Scale:
    """OFM_SCALE without the 16 bits, whose removal is exact in every rounding."""
    value = registers["OFM_SCALE"]
    multiplier, shift = value & 0x7FFFFFFF, value >> 32 & 63
    if multiplier != 1 or shift < 16:
        raise registers.unsupported("OFM_SCALE", (multiplier, shift), "in RESIZE")
    rest = value - (16 << 32)
    return checked_scale(registers, "OFM_SCALE", multiplier, rest, ofm_rounding(registers))


Axis = tuple[NDArray[np.int64], NDArray[np.int64], int, int]


def _positions(registers: Registers, axis: str, count: int, size: int) -> Axis:
    """For each output index the whole and the fractional input position, n, and the size."""
    n = registers[f"RESIZE_{axis}_SCALE_N_M1"] + 1
    step = registers[f"RESIZE_{axis}"]
    whole, rest = step >> 32 & 15, step & 0x7FF
    offset = registers[f"RESIZE_{axis}_OFFSET"] & 0xFFF
    offset -= (offset & 0x800) << 1
    place = np.arange(count, dtype=np.int64) * (whole * n + rest) + offset
    return place // n, place % n, n, size


def _bilinear(values: NDArray[np.int64], rows: Axis, columns: Axis) -> NDArray[np.int64]:
    def blend(source: NDArray[np.int64], axis: int, places: Axis) -> NDArray[np.int64]:
        index, part, n, size = places
        shape = [1, 1, 1]
        shape[axis] = len(index)
        weight = part.reshape(shape)
        near = source.take(np.clip(index, 0, size - 1), axis)
        far = source.take(np.clip(index + 1, 0, size - 1), axis)
        result: NDArray[np.int64] = near * (n - weight) + far * weight
        return result

    return blend(blend(values, 0, rows), 1, columns)


def _nearest(values: NDArray[np.int64], rows: Axis, columns: Axis) -> NDArray[np.int64]:
    def chosen(places: Axis) -> NDArray[np.int64]:
        index, part, n, size = places
        return np.clip(index + (2 * part >= n), 0, size - 1)

    return values.take(chosen(rows), 0).take(chosen(columns), 1)
