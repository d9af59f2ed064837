"""Convolution, depthwise and pooling sums, exact, through floating-point BLAS where it can be.

A sum of products is exact in float32 while every partial sum stays below 2**24, in float64
below 2**53; the bound is taken from the weights and inputs at hand, not from their types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_LANES = 1 << 15  # elements per step: a few of them fit a second-level cache
_COLUMNS = 1 << 23  # elements of a convolution's input, once per kernel element, per step


@dataclass(frozen=True)
class Window:
    """How a kernel moves: sizes in elements, padding in (up-scaled) input elements."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right
    output: tuple[int, int]

    @property
    def needed(self) -> tuple[int, int]:
        """Input rows and columns that are read, without padding."""
        top, left, bottom, right = self.pads
        height = (self.output[0] - 1) * self.stride[0] + self._reach(0) - top - bottom
        width = (self.output[1] - 1) * self.stride[1] + self._reach(1) - left - right
        return height, width

    def _reach(self, axis: int) -> int:
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    @property
    def is_pointwise(self) -> bool:
        return self.kernel == (1, 1) and self.stride == (1, 1) and not any(self.pads)

    def taps(self) -> list[tuple[int, int, slice, slice]]:
        """(kernel y, kernel x, rows, columns) of the padded input under each element."""
        result: list[tuple[int, int, slice, slice]] = []
        for y in range(self.kernel[0]):
            rows = self._run(y, 0)
            for x in range(self.kernel[1]):
                result.append((y, x, rows, self._run(x, 1)))
        return result

    def _run(self, element: int, axis: int) -> slice:
        start = element * self.dilation[axis]
        return slice(
            start, start + (self.output[axis] - 1) * self.stride[axis] + 1, self.stride[axis]
        )


@dataclass(frozen=True)
class Kernel:
    """Weights ready for multiplying, with the figure that decides the precision."""

    matrix: Array  # (ky * kx * ifm, ofm), or (ky, kx, ofm) for depthwise
    weight_sum: float  # the largest sum of absolute weights of one output channel

    def at(self, dtype: type) -> Array:
        return self.matrix if self.matrix.dtype == dtype else self.matrix.astype(dtype)


def convolution_kernel(weights: NDArray[np.int16]) -> Kernel:
    """From (ofm, y, x, ifm)."""
    matrix = weights.reshape(len(weights), -1).T.astype(np.float32, order="C")
    return Kernel(matrix, _largest_sum(matrix))


def depthwise_kernel(weights: NDArray[np.int16]) -> Kernel:
    """From (ofm, y, x, 1)."""
    matrix = weights[:, :, :, 0].transpose(1, 2, 0).astype(np.float32, order="C")
    return Kernel(matrix, _largest_sum(matrix.reshape(-1, len(weights))))


def _largest_sum(matrix: Array) -> float:
    """Of absolute weights, over the columns; a double holds it exactly."""
    return float(np.abs(matrix).sum(0, dtype=np.float64).max(initial=0))


def precision(limit: float) -> type | None:
    """The floating-point type in which sums up to ``limit`` are exact, if there is one."""
    if limit < 1 << 24:
        return np.float32
    return np.float64 if limit < 2.0**53 else None


def centred(values: Array, zero_point: int, dtype: type) -> Array:
    """values - zero_point in ``dtype``."""
    result: Array = values.astype(dtype)
    if zero_point:
        result -= zero_point
    return result


def padded(values: Array, window: Window, fill: float = 0) -> Array:
    top, left, bottom, right = window.pads
    if not any(window.pads):
        return values
    height, width, depth = values.shape
    result = np.empty((height + top + bottom, width + left + right, depth), values.dtype)
    result[:top] = result[top + height :] = fill
    result[:, :left] = result[:, left + width :] = fill
    result[top : top + height, left : left + width] = values
    return result


def convolve(values: Array, kernel: Kernel, window: Window) -> Array:
    """``values`` centred and in the precision to use; gives (height, width, ofm)."""
    height, width = window.output
    matrix = kernel.at(values.dtype.type)
    if window.is_pointwise:
        return (values.reshape(height * width, -1) @ matrix).reshape(height, width, -1)
    source, taps = padded(values, window), window.taps()
    row = width * len(taps) * values.shape[2]
    result = np.empty((height, width, matrix.shape[1]), values.dtype)
    step = min(height, max(1, _COLUMNS // row))
    columns = np.empty((step, width, len(taps), values.shape[2]), values.dtype)
    for first in range(0, height, step):
        part = columns[: min(step, height - first)]
        for index, (_, _, rows, cols) in enumerate(taps):
            part[:, :, index] = source[_some(rows, first, len(part)), cols]
        products = part.reshape(len(part) * width, -1) @ matrix
        result[first : first + len(part)] = products.reshape(len(part), width, -1)
    return result


def _some(rows: slice, first: int, count: int) -> slice:
    """``count`` of the rows of a tap."""
    start = rows.start + first * rows.step
    return slice(start, start + (count - 1) * rows.step + 1, rows.step)


def convolve_depthwise(values: Array, kernel: Kernel, window: Window) -> Array:
    """One input channel per output channel; a few rows at a time, to stay in the cache."""
    height, width = window.output
    source = padded(values, window)
    matrix = kernel.at(values.dtype.type)
    depth = matrix.shape[2]
    result = np.empty((height, width, depth), values.dtype)
    step = max(1, _LANES // max(1, width * depth))
    scratch = np.empty((step, width, depth), values.dtype)
    for row in range(0, height, step):
        count = min(step, height - row)
        target, product = result[row : row + count], scratch[:count]
        for index, (y, x, rows, cols) in enumerate(window.taps()):
            part = source[_some(rows, row, count), cols]
            if index == 0:
                np.multiply(part, matrix[y, x], out=target)
            else:
                np.multiply(part, matrix[y, x], out=product)
                target += product
    return result


def pool_sum(values: Array, window: Window) -> Array:
    source = padded(values, window)
    taps = window.taps()
    result = source[taps[0][2], taps[0][3]].copy()
    for _, _, rows, cols in taps[1:]:
        result += source[rows, cols]
    return result


def pool_extreme(values: Array, window: Window, *, largest: bool) -> Array:
    """Maximum or minimum; padding never wins."""
    wide = values.astype(np.int32) if values.dtype.itemsize < 4 else values.astype(np.int64)
    limits = np.iinfo(wide.dtype)
    source = padded(wide, window, limits.min if largest else limits.max)
    choose = np.maximum if largest else np.minimum
    taps = window.taps()
    result = source[taps[0][2], taps[0][3]].copy()
    for _, _, rows, cols in taps[1:]:
        choose(result, source[rows, cols], out=result)
    return result


def valid_counts(window: Window) -> NDArray[np.int64]:
    """For each output position the number of window elements that are not padding."""
    per_axis = []
    for axis in (0, 1):
        first = np.arange(window.output[axis]) * window.stride[axis] - window.pads[axis]
        valid = np.zeros(window.output[axis], np.int64)
        for element in range(window.kernel[axis]):
            places = first + element * window.dilation[axis]
            valid += (places >= 0) & (places < window.needed[axis])
        per_axis.append(valid)
    counts: NDArray[np.int64] = np.multiply.outer(per_axis[0], per_axis[1])
    return counts
