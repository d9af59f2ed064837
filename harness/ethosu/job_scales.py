"""The scale of a job, in arrays that the job points into."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.job_fields import LANES, SCALE_ARRAYS, ScaleFields
from harness.ethosu.output_stage import Scale, is_identity
from harness.ethosu.plan import OutputPlan

_NARROW, _WIDE, _ANY = range(3)
_ALL, _CHANNEL, _POSITION = range(3)
EXACT = 1 << 62  # of a product and its half


class Keep:
    """Arrays that a job points into. ``shared``: those that many jobs of a stream have alike."""

    def __init__(self, shared: dict[tuple[int, ...], Any] | None = None) -> None:
        self._kept: list[Any] = []
        self._shared = {} if shared is None else shared

    def __call__(self, array: NDArray[Any]) -> int:
        self._kept.append(array)
        return int(array.ctypes.data)

    def lanes(self, values: tuple[int, ...]) -> int:
        """Each of them LANES times."""
        content = self._shared.get(values)
        if content is None:
            content = (ctypes.c_int64 * (LANES * len(values)))(
                *(v for v in values for _ in range(LANES))
            )
            self._shared[values] = content
        return ctypes.addressof(content)


def fill_scale(
    fields: ScaleFields,
    output: OutputPlan,
    scale: Scale,
    bias: NDArray[np.int64] | None,
    limit: float,
    keep: Keep,
) -> bool:
    """``limit`` bounds the absolute sums. False: the step in numpy has to say what is wrong."""
    if scale.multiplier.size == 1 and bias is None:
        return _uniform_scale(fields, output, scale, limit, keep)
    if not output.rounds:
        return False
    positions = scale.multiplier.ndim == 3
    if positions and bias is not None:
        return False
    fields.scope = _POSITION if positions else _CHANNEL
    count = scale.multiplier.size if positions else output.shape[2]
    rows = np.zeros((len(SCALE_ARRAYS), count + 2 * LANES), np.int64)
    values = rows[:, :count]
    given = scale.multiplier.reshape(-1), scale.half.reshape(-1), scale.shift.reshape(-1)
    values[0] = 0 if bias is None else bias
    values[1], values[2], values[3] = given
    fields.mode = _mode(values[:4], limit, output.zero_point)
    if fields.mode != _ANY:
        np.multiply(values[0], values[1], out=values[4])
        values[4] += values[2] + (np.int64(output.zero_point) << values[3])
    content = keep(rows)
    for number, name in enumerate(SCALE_ARRAYS):
        setattr(fields, name, content + number * rows.strides[0])
    return True


def _uniform_scale(
    fields: ScaleFields, output: OutputPlan, scale: Scale, limit: float, keep: Keep
) -> bool:
    """Of most of the jobs of a stream of transposes; in Python's integers."""
    multiplier, shift = scale.multiplier.item(), scale.shift.item()
    if is_identity(multiplier, shift, limit):
        multiplier, shift = 1, 0
    if not output.rounds and (multiplier, shift) != (1, 0):
        return False
    half = 1 << (shift - 1) if scale.halves and shift > 0 else 0
    bounds = int(limit) + 1, abs(multiplier), half, shift, shift
    fields.scope, fields.mode = _ALL, _mode_of(*bounds, output.zero_point)
    addend = half + (output.zero_point << shift) if fields.mode != _ANY else 0
    content = keep.lanes((0, multiplier, half, shift, addend))
    for number, name in enumerate(SCALE_ARRAYS):
        setattr(fields, name, content + number * 8 * LANES)
    return True


def _mode(values: NDArray[np.int64], limit: float, zero_point: int) -> int:
    """How wide the numbers get: bias, multiplier, half and shift; in Python's integers, so that
    the bound itself is exact."""
    low, high = values.min(1).tolist(), values.max(1).tolist()
    bias, factor = (max(-a, b) for a, b in zip(low[:2], high[:2], strict=True))
    return _mode_of(int(limit) + 1 + bias, factor, high[2], low[3], high[3], zero_point)


def _mode_of(
    largest: int, factor: int, half: int, least_shift: int, shift: int, zero_point: int
) -> int:
    if shift > 62 or largest * factor + half + (abs(zero_point) << shift) >= EXACT:
        return _ANY
    result = (largest * factor + half >> least_shift) + abs(zero_point) + 1
    return _NARROW if max(largest, factor, result) < 1 << 31 else _WIDE
