"""The U55's and U65's way out: OFM registers, rounding modes, activation and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.common import (
    INT8,
    INT16,
    INT32,
    Array,
    Context,
    element_type,
    is_bricks,
)
from harness.ethosu.errors import AccessError
from harness.ethosu.featuremap import FeatureMap, feature_map
from harness.ethosu.output_stage import (
    UNIT,
    Finish,
    Scale,
    is_identity,
    look_up_8bit,
    look_up_16bit,
)
from harness.ethosu.plan import OutputPlan
from harness.ethosu.stream import Registers

ROUNDING = {0: "DBL", 1: "TRUNCATE", 2: "NATURAL"}
_LUT_SLOT, _LUT_BYTES = 256, 2048  # at the end of the internal memory


@dataclass(frozen=True)
class Output:
    """Scales, clamps, looks up and stores one operation's results."""

    ofm: FeatureMap
    registers: Registers
    rounding: str
    zero_point: int
    clamp: tuple[int, int] | None
    table: int | None

    def plan(self) -> OutputPlan:
        size = 2048 if self._index_type() == INT16 else 256 * self.ofm.dtype.itemsize
        return OutputPlan(
            ofm=self.ofm,
            shape=self.ofm.shape,
            index_type=self.ofm.dtype if self.table is None else self._index_type(),
            zero_point=self.zero_point,
            clamp=self.clamp,
            table=None if self.table is None else (self.table * _LUT_SLOT - _LUT_BYTES, size),
            rounds=self.rounding == "NATURAL",
        )

    def store(
        self,
        context: Context,
        sums: Array,
        limit: float,
        scale: Scale,
        bias: NDArray[np.int64] | None,
    ) -> None:
        one = scale.multiplier.size == 1
        if one and is_identity(scale.multiplier.item(), scale.shift.item(), limit):
            scale = UNIT
        if self.rounding != "NATURAL" and not scale.is_unit:
            raise self.registers.unsupported(
                "OFM_PRECISION.round_mode", self.rounding, "with a scale that is not 1"
            )
        dtype = self._index_type() if self.table is not None else self.ofm.dtype
        finish = Finish(scale, self.zero_point, self.clamp, dtype, bias)
        result = finish.apply(sums, limit)
        if self.table is not None:
            result = self._look_up(context, result)
        self.ofm.write(context.memory, result)

    def _index_type(self) -> np.dtype[Any]:
        return INT16 if self.ofm.dtype == INT16 else INT8

    def _look_up(self, context: Context, indices: Array) -> Array:
        assert self.table is not None
        internal = context.memory.internal
        start = len(internal) - _LUT_BYTES + self.table * _LUT_SLOT
        size = 2048 if indices.dtype == INT16 else 256 * self.ofm.dtype.itemsize
        if start + size > len(internal):
            raise AccessError(f"table {self.table} does not fit the RAM", self.ofm.offset)
        table = internal[start : start + size]
        if indices.dtype == INT16:
            return look_up_16bit(indices, table, self.ofm.dtype)
        return look_up_8bit(indices, table, self.ofm.dtype)


def prepare_output(registers: Registers, shape: tuple[int, int, int]) -> Output:
    dtype = element_type(registers, "OFM_PRECISION", 1)
    if dtype not in (INT8, INT16, INT32):
        raise registers.unsupported("OFM_PRECISION.activation_precision", dtype)
    rounding = ROUNDING.get(registers.bits("OFM_PRECISION", 14, 2))
    if rounding is None or rounding == "TRUNCATE":
        raise registers.unsupported("OFM_PRECISION.round_mode", rounding)
    function, clip = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 12, 3)
    if 0 < function < 16 or function > 23:
        raise registers.unsupported("ACTIVATION.activation_function", function)
    table = function - 16 if function else None
    if clip not in (0, 3):
        raise registers.unsupported("ACTIVATION.activation_clip_range", clip)
    clamp = (registers.signed16("ACTIVATION_MIN"), registers.signed16("ACTIVATION_MAX"))
    if clamp[0] > clamp[1]:
        raise registers.unsupported("ACTIVATION_MIN", clamp[0], "above ACTIVATION_MAX")
    clamped = _clamp(dtype if clip == 0 else INT8, clamp)
    bricks = is_bricks(registers, "OFM_PRECISION")
    return Output(
        ofm=feature_map(registers, "OFM", shape, dtype, bricks),
        registers=registers,
        rounding=rounding,
        zero_point=registers.signed16("OFM_ZERO_POINT"),
        clamp=clamped,
        table=table,
    )


def _clamp(dtype: np.dtype[Any], clamp: tuple[int, int]) -> tuple[int, int] | None:
    """32-bit results are stored as they are."""
    if dtype == INT32:
        return None
    limits = np.iinfo(dtype)
    return max(clamp[0], limits.min), min(clamp[1], limits.max)
