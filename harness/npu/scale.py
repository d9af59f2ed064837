"""Scales of the output stage, and the arrays that a job has them in.

The result is (value + bias) * multiplier + half >> shift. Its bounds are computed here, so that
``kernel/output.cpp`` can use narrow integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.npu.errors import AccessError

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
RECORD_BYTES = 10  # bias, scale and shift of a channel
_LANES = 16  # kLanes of kernel/vectors.h
_EXACT = 1 << 62  # a product and its half, in 64 bits
_ARRAYS = ("bias", "multiplier", "half", "shift", "addend")


@dataclass(frozen=True)
class Scale:
    """Multiplies, adds a half if ``halves``, and shifts.

    One per channel, one per position (height, width, 1), or one for all."""

    multiplier: Integers
    shift: Integers
    halves: bool = True

    @property
    def is_unit(self) -> bool:
        return bool((self.multiplier == 1).all() and (self.shift == 0).all())

    @property
    def half(self) -> Integers:
        if not self.halves:
            return np.zeros_like(self.shift)
        return np.where(self.shift > 0, np.int64(1) << np.maximum(self.shift - 1, 0), 0)

    def is_identity(self, limit: int) -> bool:
        """Whether it changes nothing. In transposes (2**31 + 1) >> 31 is 1 with every rounding."""
        if self.multiplier.size > 1 or self.is_unit:
            return self.is_unit
        plain = (self.multiplier.item(), self.shift.item()) == ((1 << 31) + 1, 31)
        return plain and limit < 1 << 30


def single_scale(multiplier: int, shift: int, *, halves: bool = True) -> Scale:
    return Scale(np.array([multiplier], np.int64), np.array([shift], np.int64), halves)


UNIT = single_scale(1, 0)


@dataclass(frozen=True)
class ScaleWriter:
    """Writes a scale to the structure ``fields`` of a job.

    ``zero_point``: of the output; ``limit`` bounds the absolute sums."""

    fields: Any
    modes: dict[str, dict[str, int]]
    zero_point: int
    limit: int
    keep: list[NDArray[Any]]

    def write(self, scale: Scale, bias: Integers | None, channels: int) -> None:
        """``keep`` holds the arrays that the structure then points into."""
        scope, count = "kChannel", channels
        if scale.multiplier.size == 1 and bias is None:
            scope, count = "kAll", _LANES
            scale = UNIT if scale.is_identity(self.limit) else scale
        elif scale.multiplier.ndim == 3:
            scope, count = "kPosition", scale.multiplier.size
        rows = np.zeros((len(_ARRAYS), count + 2 * _LANES), np.int64)
        values = rows[:, :count]
        values[0] = 0 if bias is None else bias
        for row, given in enumerate((scale.multiplier, scale.half, scale.shift), 1):
            values[row] = given.reshape(-1)
        low, high = values[:4].min(1).tolist(), values[:4].max(1).tolist()
        largest, factor = (max(-a, b) for a, b in zip(low[:2], high[:2], strict=True))
        mode = self._mode(largest, factor, high[2], (low[3], high[3]))
        if mode != "kAny":
            np.multiply(values[0], values[1], out=values[4])
            values[4] += values[2] + (np.int64(self.zero_point) << values[3])
        self.keep.append(rows)
        self.fields.mode = self.modes["ScaleMode"][mode]
        self.fields.scope = self.modes["ScaleFor"][scope]
        for number, name in enumerate(_ARRAYS):
            setattr(self.fields, name, rows.ctypes.data + number * rows.strides[0])

    def _mode(self, bias: int, factor: int, half: int, shifts: tuple[int, int]) -> str:
        largest, zero_point = self.limit + 1 + bias, abs(self.zero_point)
        bound = largest * factor + half + (zero_point << shifts[1])
        if shifts[1] > 62 or bound >= _EXACT:
            return "kAny"
        result = (largest * factor + half >> shifts[0]) + zero_point + 1
        return "kNarrow" if max(largest, factor, result) < 1 << 31 else "kWide"


def scale_records(data: bytes, count: int, offset: int) -> Bytes:
    """``count`` records of ten bytes, as rows. Raises AccessError."""
    if len(data) < count * RECORD_BYTES:
        raise AccessError(f"{len(data)} bytes of scales for {count} channels", offset)
    return np.frombuffer(data, np.uint8, count * RECORD_BYTES).reshape(count, RECORD_BYTES)


def little_endian(columns: Bytes) -> Integers:
    """Return the integers whose bytes are the columns, at most seven."""
    wide = np.zeros((len(columns), 8), np.uint8)
    wide[:, : columns.shape[1]] = columns
    result: Integers = wide.view("<i8")[:, 0]
    return result
