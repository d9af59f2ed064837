"""From accumulator to stored value: bias, scale, round, zero point, clamp, table.

Scaling is exact for every input. Double precision is used where all steps are provably
exact in it, 64-bit integers in two halves everywhere else. Rounding NATURAL is half up, as in
the TOSA reference model's RESCALE, and a table is looked up as in its TABLE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.errors import AccessError

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
_EXACT = 2.0**53
RECORD_BYTES = 10  # bytes of bias, scale and shift, per channel
_LANES = 1 << 15  # elements per step, so that the double-precision copy stays in the cache


@dataclass(frozen=True)
class Scale:
    """Multiply, add a half unless ``halves`` is off, shift; one per channel or one for all."""

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


def single_scale(multiplier: int, shift: int, *, halves: bool = True) -> Scale:
    return Scale(np.array([multiplier], np.int64), np.array([shift], np.int64), halves)


UNIT = single_scale(1, 0)


def is_identity(multiplier: int, shift: int, limit: float) -> bool:
    """(2**31 + 1) >> 31 is 1 with every rounding to nearest; it copies, as in transposes."""
    return (multiplier, shift) == ((1 << 31) + 1, 31) and limit < 1 << 30


@dataclass(frozen=True)
class Finish:
    """What happens to an accumulator before it is stored; 32-bit results are not clamped."""

    scale: Scale
    zero_point: int
    clamp: tuple[int, int] | None
    dtype: np.dtype[Any]
    bias: Integers | None = None

    def apply(self, accumulators: Array, limit: float) -> Array:
        """``limit`` bounds the absolute accumulators, bias not included."""
        bias = self.bias if self.bias is not None else np.zeros(1, np.int64)
        if self._fits_doubles(limit, bias) or self._fits_doubles(_largest(accumulators), bias):
            return self._in_doubles(accumulators, bias)
        wide = accumulators.astype(np.int64) + bias
        return self._stored(scale_exactly(wide, self.scale) + self.zero_point)

    def _fits_doubles(self, limit: float, bias: Integers) -> bool:
        multiplier = np.abs(self.scale.multiplier).astype(np.float64)
        largest = (limit + np.abs(bias)) * multiplier + self.scale.half
        zero_point = abs(self.zero_point) * 2.0 ** int(self.scale.shift.max())
        return float(np.max(largest)) + zero_point < _EXACT

    def _in_doubles(self, accumulators: Array, bias: Integers) -> Array:
        """Bias, half and zero point are one addend: all are multiples of 2**-shift."""
        half = self.scale.half
        factor = np.ldexp(self.scale.multiplier.astype(np.float64), -self.scale.shift)
        addend = bias * factor + np.ldexp(half.astype(np.float64), -self.scale.shift)
        addend = addend + self.zero_point
        rows = len(accumulators)
        result = np.empty(accumulators.shape, self.dtype)
        step = max(1, _LANES * rows // max(1, accumulators.size))
        for row in range(0, rows, step):
            part = slice(row, row + step)
            values = np.multiply(accumulators[part], _rows(factor, part), dtype=np.float64)
            values += _rows(addend, part)
            if self.clamp is not None:
                np.floor(values, out=values)
                np.clip(values, *self.clamp, out=values)
                result[part] = values
            else:
                result[part] = np.floor(values).astype(np.int64).astype(self.dtype)
        return result

    def _stored(self, values: Integers) -> Array:
        if self.clamp is not None:
            values = np.clip(values, *self.clamp)
        return values.astype(self.dtype)


def _rows(values: NDArray[np.float64], part: slice) -> NDArray[np.float64]:
    """Some rows of what is given for each position; what is given once serves all rows."""
    return values[part] if values.ndim == 3 else values


def scale_exactly(values: Integers, scale: Scale) -> Integers:
    """(values * multiplier + half) >> shift, for every 64-bit value."""
    if scale.is_unit:
        return values
    largest = _largest(values)
    if largest * float(np.abs(scale.multiplier).max()) + float(scale.half.max()) < 2.0**62:
        direct: Integers = (values * scale.multiplier + scale.half) >> scale.shift
        return direct
    if (scale.shift < 16).any() or largest >= 1 << 46:
        return _scale_big(values, scale)
    high = values * (scale.multiplier >> 16)
    low = values * (scale.multiplier & 0xFFFF) + scale.half
    result: Integers = (high + (low >> 16)) >> (scale.shift - 16)
    return result


def _scale_big(values: Integers, scale: Scale) -> Integers:
    """Python's integers: slow, for the few products that need up to 96 bits."""
    exact = values.astype(object) * scale.multiplier.astype(object) + scale.half.astype(object)
    low = (exact >> scale.shift.astype(object)) & ((1 << 64) - 1)
    result: Integers = low.astype(np.uint64).astype(np.int64)
    return result


def _largest(values: Array) -> float:
    return max(-float(values.min(initial=0)), float(values.max(initial=0)))


def scale_records(data: bytes, count: int, offset: int) -> Bytes:
    """``count`` records of ten bytes, one row each."""
    if len(data) < count * RECORD_BYTES:
        raise AccessError(f"{len(data)} bytes of scales for {count} channels", offset)
    return np.frombuffer(data, np.uint8, count * RECORD_BYTES).reshape(count, RECORD_BYTES)


def little_endian(columns: Bytes) -> Integers:
    """Of at most seven columns."""
    wide = np.zeros((len(columns), 8), np.uint8)
    wide[:, : columns.shape[1]] = columns
    result: Integers = wide.view("<i8")[:, 0]
    return result


def look_up_8bit(indices: Array, table: Bytes, dtype: np.dtype[Any]) -> Array:
    """256 entries of ``dtype``; the first belongs to -128."""
    result: Array = table.view(dtype)[indices.astype(np.int16) + 128]
    return result


def look_up_16bit(values: Array, table: Bytes, dtype: np.dtype[Any]) -> Array:
    """512 entries of base (low 16 bits) and slope (high 16), with 7 bits of interpolation.

    A 32-bit result keeps those 7 bits, as TOSA's does; a 16-bit one rounds them off.
    """
    entries = table.view(np.int16).reshape(512, 2).astype(np.int32)
    wide = values.astype(np.int32)
    chosen = entries[(wide >> 7) + 256]
    result = (chosen[..., 0] << 7) + chosen[..., 1] * (wide & 127)
    if dtype.itemsize == 2:
        result = (result + 64) >> 7
    stored: Array = result.astype(dtype)
    return stored
