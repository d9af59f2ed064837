"""Decodes register fields and parts of jobs that all generations share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.npu.errors import check_limit
from harness.npu.feature_map import ELEMENTS
from harness.npu.job import (
    INT8,
    INT16,
    INT32,
    INT64,
    Accumulators,
    Job,
    Operand,
    Output,
    Span,
    Window,
)
from harness.npu.kernel_library import enumerator
from harness.npu.scale import UNIT, Scale
from harness.npu.stream import Registers

KERNEL = 1 << 16  # the most elements of a kernel; the U85's largest is 256 x 256
DIVISORS = 1 << 20  # the most of an average pool with a divisor for each position
_EXTREMES = ("MAX", "MIN")
_SIDES = ("TOP", "LEFT", "BOTTOM", "RIGHT")
_PRECISIONS = (INT8, INT16, INT32, INT64)


def element_type(registers: Registers, register: str, low: int) -> np.dtype[Any]:
    """Signed 8, 16, 32 or 64 bits; the precision field starts at bit ``low``."""
    if not registers.bits(register, 0):
        raise registers.unsupported(f"{register}.activation_type", "UNSIGNED")
    return _PRECISIONS[registers.bits(register, low, 2)]


def is_bricks(registers: Registers, register: str) -> bool:
    layout = registers.bits(register, 6, 2)
    if layout > 1:
        raise registers.unsupported(f"{register}.activation_format", layout)
    return layout == 1


def kernel_window(registers: Registers) -> Window:
    """Read the kernel, stride, dilation and padding; KERNEL_*_M1 is the dilated size - 1."""
    strides = registers["KERNEL_STRIDE"]
    stride_x = 1 + (strides & 1) + 2 * (strides >> 6 & 1)
    stride_y = 1 + (strides >> 1 & 1) + 2 * (strides >> 9 & 1)
    dilation_x, dilation_y = 1 + (strides >> 3 & 1), 1 + (strides >> 4 & 1)
    if strides >> 5 & 1:
        raise registers.unsupported("KERNEL_STRIDE.decomposition", "D4X4")
    reach_y, reach_x = registers["KERNEL_HEIGHT_M1"], registers["KERNEL_WIDTH_M1"]
    if reach_y % dilation_y or reach_x % dilation_x:
        names = "KERNEL_HEIGHT_M1, KERNEL_WIDTH_M1"
        raise registers.unsupported(names, (reach_y, reach_x), "not a dilated kernel")
    top, left, bottom, right = (registers[f"IFM_PAD_{side}"] for side in _SIDES)
    window = Window(
        kernel=(reach_y // dilation_y + 1, reach_x // dilation_x + 1),
        stride=(stride_y, stride_x),
        dilation=(dilation_y, dilation_x),
        pads=(top, left, bottom, right),
        output=(registers["OFM_HEIGHT_M1"] + 1, registers["OFM_WIDTH_M1"] + 1),
        upscale=registers.get("IFM_UPSCALE"),
    )
    check_limit("the kernel", window.elements, KERNEL, "elements", registers.offset)
    if min(window.needed) < 1:
        raise registers.unsupported("KERNEL, PAD and OFM size", window)
    return window


def weight_span(registers: Registers, kind: str, number: str) -> Span:
    """``kind``: WEIGHT or SCALE; ``number``: of the stream, "" for the first."""
    length = registers[f"{kind}{number}_LENGTH"] & 0xFFFFFFFF
    region = registers[f"{kind}_REGION"] & 7
    return region, registers[f"{kind}{number}_BASE"] if length else 0, length


def reciprocal(registers: Registers, window: Window, bits: int) -> Scale:
    """Return the scale 1 / n of an average of n elements; one for each position if they differ.

    It has ``bits`` more bits than n: 30 as in TOSA's AVG_POOL2D, 31 for the U55 (inferred)."""
    counts = np.full(1, window.elements, np.int64)
    if any(window.pads):
        positions = window.output[0] * window.output[1]
        check_limit("the pool", positions, DIVISORS, "divisors of averages", registers.offset)
        counts = window.valid_counts()
        if not counts.all():
            raise registers.unsupported("IFM_PAD", window.pads, "an average of padding alone")
        same = counts.min() == counts.max()
        counts = counts.reshape(-1)[:1] if same else counts[:, :, None]
    width = np.ceil(np.log2(counts)).astype(np.int64)
    one = np.int64(1)
    return Scale(((one << (bits + width)) + (one << width)) // counts, bits + width)


def ofm_shape(registers: Registers) -> tuple[int, int, int]:
    """Height, width and depth before a transpose."""
    sizes = ("HEIGHT", "WIDTH", "DEPTH")
    height, width, depth = (registers[f"OFM_{size}_M1"] + 1 for size in sizes)
    check_limit("the OFM", height * width * depth, ELEMENTS, "elements", registers.offset)
    return height, width, depth


def broadcasting(shape: tuple[int, int, int], broadcast: int) -> tuple[int, int, int]:
    """Return the shape of an operand that is broadcast to ``shape``, along the axes of a mask."""
    height, width, depth = (1 if broadcast >> bit & 1 else size for bit, size in enumerate(shape))
    return height, width, depth


def source_size(registers: Registers, window: Window) -> tuple[int, int]:
    """Return the rows and columns that the window reads, before IFM_UPSCALE enlarges them."""
    mode = registers["IFM_UPSCALE"]
    if mode > 2:
        raise registers.unsupported("IFM_UPSCALE", mode)
    height, width = window.needed
    return (height, width) if mode == 0 else (-(-height // 2), -(-width // 2))


def require_shorts(registers: Registers, prefix: str, dtype: np.dtype[Any], point: int) -> None:
    """Check an operand of a product: minus its zero point it has 16 bits, as in TOSA."""
    if dtype not in (INT8, INT16):
        raise registers.unsupported(f"{prefix}_PRECISION", dtype)
    least = -128 if dtype == INT8 else -0x8000
    if least - point < -0x8000 or -least - 1 - point > 0x7FFF:
        raise registers.unsupported(f"{prefix}_ZERO_POINT", point, f"of {dtype}")


def pool(
    mode: str,
    offset: int,
    window: Window,
    ifm: Operand | None,
    output: Output,
    accumulators: Accumulators,
    scaling: Scale = UNIT,
) -> Job:
    """Return a pooling job. Without ``ifm`` only the accumulators are pooled."""
    limit = 0 if ifm is None else ifm.limit
    if ifm is not None and mode not in _EXTREMES:
        limit *= window.elements * (ifm.shape[2] if mode == "REDUCE_SUM" else 1)
    job = Job(
        kind="kPool",
        offset=offset,
        pooling=enumerator(mode),
        first=ifm,
        window=window,
        output=output,
        accumulators=accumulators,
        limit=limit,
        scaling=scaling,
    )
    if mode not in _EXTREMES or not accumulators.is_plain or not any(window.pads):
        return job
    # A window of padding alone gives the lowest or highest number, which is clamped. Only defects
    # of Vela make such windows.
    alone = not window.valid_counts().all()
    return replace(job, limit=1 << 62, accumulators=Accumulators(64)) if alone else job
