"""The U55's and U65's output: OFM registers, rounding modes, activation and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.npu.feature_map import feature_map
from harness.npu.fields import element_type, is_bricks
from harness.npu.job import INT8, INT16, INT32, LookUp, Output
from harness.npu.scale import Scale, single_scale
from harness.npu.stream import Registers

_ROUNDING = {0: "DBL", 1: "TRUNCATE", 2: "NATURAL"}
_LUT_SLOT, _LUT_BYTES = 256, 2048  # at the end of the internal memory


def prepare_output(registers: Registers, shape: tuple[int, int, int]) -> Output:
    dtype = element_type(registers, "OFM_PRECISION", 1)
    if dtype not in (INT8, INT16, INT32):
        raise registers.unsupported("OFM_PRECISION.activation_precision", dtype)
    rounding = _ROUNDING.get(registers.bits("OFM_PRECISION", 14, 2))
    if rounding is None or rounding == "TRUNCATE":
        raise registers.unsupported("OFM_PRECISION.round_mode", rounding)
    function, clip = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 12, 3)
    if 0 < function < 16 or function > 23:
        raise registers.unsupported("ACTIVATION.activation_function", function)
    if clip not in (0, 3):
        raise registers.unsupported("ACTIVATION.activation_clip_range", clip)
    clamp = (registers.signed16("ACTIVATION_MIN"), registers.signed16("ACTIVATION_MAX"))
    if clamp[0] > clamp[1]:
        raise registers.unsupported("ACTIVATION_MIN", clamp[0], "above ACTIVATION_MAX")
    bricks = is_bricks(registers, "OFM_PRECISION")
    index_type, look_up = dtype, None
    if function:
        index_type = INT16 if dtype == INT16 else INT8
        size = 2048 if index_type == INT16 else 256 * dtype.itemsize
        number = function - 16
        look_up = LookUp(number, number * _LUT_SLOT - _LUT_BYTES, size)
    return Output(
        map=feature_map(registers, "OFM", shape, dtype, bricks),
        shape=shape,
        index_type=index_type,
        zero_point=registers.signed16("OFM_ZERO_POINT"),
        clamp=_clamp(dtype if clip == 0 else INT8, clamp),
        look_up=look_up,
        rounding="" if rounding == "NATURAL" else rounding,
    )


def _clamp(dtype: np.dtype[Any], clamp: tuple[int, int]) -> tuple[int, int] | None:
    """32-bit results are stored as they are."""
    if dtype == INT32:
        return None
    limits = np.iinfo(dtype)
    return max(clamp[0], int(limits.min)), min(clamp[1], int(limits.max))


def ofm_scale(registers: Registers) -> Scale:
    value = registers["OFM_SCALE"]
    return single_scale(value & 0xFFFFFFFF, value >> 32 & 63)
