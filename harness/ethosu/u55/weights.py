"""Decoded weights in the order of the hardware back to (ofm, y, x, ifm): U55 and U65.

The order is the one of ``EthosUWeightOrdering`` in regor's ``ethos_u55_weight_encoder.cpp``
(Vela 5.1.0). Where it reads no weight it writes 0, which strict mode checks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.errors import AccessError

Weights = NDArray[np.int16]


@dataclass(frozen=True)
class WeightLayout:
    """What decides the order; ``kernel`` and ``ifm_depth`` are those of the weights."""

    ofm_depth: int
    kernel: tuple[int, int]
    ifm_depth: int
    ofm_block: int
    ofm_ublock: int
    ifm_16bit: bool
    part_kernel: bool
    depthwise: bool
    dilation: tuple[int, int]
    cores: int = 1


class Stream:
    """Takes counted pieces off a decoded stream."""

    def __init__(self, values: Weights, offset: int) -> None:
        self._values = values
        self._at = 0
        self._offset = offset

    def take(self, count: int) -> Weights:
        piece = self._values[self._at : self._at + count]
        if len(piece) != count:
            raise AccessError(
                f"the weight stream has {len(self._values)} weights, {self._at + count} are needed",
                self._offset,
            )
        self._at += count
        return piece

    def padding(self, count: int) -> None:
        self.require_zero(self.take(count))

    def require_zero(self, values: Weights) -> None:
        if values.any():
            raise AccessError("a weight in a padding position is not 0", self._offset)

    def finish(self) -> None:
        """What may follow the last weight is padding to the end of the coded block."""
        self.require_zero(self._values[self._at :])


def reorder(streams: list[Weights], layout: WeightLayout, offset: int) -> Weights:
    """``streams`` has one decoded stream per core: channel c belongs to core c % cores."""
    height, width = layout.kernel
    whole = np.zeros((layout.ofm_depth, height, width, layout.ifm_depth), np.int16)
    for core, values in enumerate(streams):
        depth = len(range(core, layout.ofm_depth, layout.cores))
        block = (layout.ofm_block + layout.cores - 1 - core) // layout.cores
        if depth:
            stream = Stream(values, offset)
            whole[core :: layout.cores] = _reorder_core(stream, layout, depth, block)
            stream.finish()
    return whole


def _reorder_core(stream: Stream, layout: WeightLayout, depth: int, block: int) -> Weights:
    height, width = layout.kernel
    sub_y, sub_x = 8 // layout.dilation[0], 8 // layout.dilation[1]
    ifm_block = 16 if layout.part_kernel or layout.ifm_16bit else 32
    ifm_depth = layout.ifm_depth
    if layout.depthwise:
        ifm_block = ifm_depth = 1
    unit = layout.ofm_ublock
    result = np.zeros((depth + max(block, unit), height, width, ifm_depth + ifm_block), np.int16)
    for ofm in range(0, depth, block):
        ofm_units = -(-min(block, depth - ofm) // unit)
        for ifm in range(0, ifm_depth, ifm_block):
            for y in range(0, height, sub_y):
                for x in range(0, width, sub_x):
                    size = (min(height - y, sub_y), min(width - x, sub_x))
                    piece = _sub_kernel(stream, layout, ofm_units, ifm_depth - ifm, size)
                    _place(stream, result, piece, (ofm, y, x, ifm), (depth, ifm_depth), size)
    return result[:depth, :, :, :ifm_depth]


def _place(
    stream: Stream,
    result: Weights,
    piece: Weights,
    corner: tuple[int, int, int, int],
    limits: tuple[int, int],
    size: tuple[int, int],
) -> None:
    """Put (ofm, kernel element, ifm) at its corner; what lies beyond the limits must be 0."""
    ofm, y, x, ifm = corner
    elements = size[0] * size[1]
    wanted = piece[: limits[0] - ofm, :elements, : limits[1] - ifm]
    if np.count_nonzero(piece) != np.count_nonzero(wanted):
        stream.require_zero(piece)  # padding is not 0: raises, there is a weight outside
        raise AssertionError
    count, depth = wanted.shape[0], wanted.shape[2]
    result[ofm : ofm + count, y : y + size[0], x : x + size[1], ifm : ifm + depth] = wanted.reshape(
        count, size[0], size[1], depth
    )


def _sub_kernel(
    stream: Stream, layout: WeightLayout, ofm_units: int, ifm_left: int, size: tuple[int, int]
) -> Weights:
    """One sub-kernel of one OFM block and IFM block, as (ofm, kernel element, ifm)."""
    unit, elements = layout.ofm_ublock, size[0] * size[1]
    if layout.depthwise:
        rounded = -(-elements // 4) * 4
        piece = stream.take(ofm_units * rounded * unit).reshape(ofm_units, rounded, unit)
        return piece.transpose(0, 2, 1).reshape(ofm_units * unit, rounded, 1)
    if layout.part_kernel:
        rounded = -(-elements // 2) * 2 if layout.ifm_16bit else -(-elements // 4) * 4
        ifm_units = -(-min(ifm_left, 16) // 8)
        piece = stream.take(ifm_units * ofm_units * rounded * unit * 8)
        piece = piece.reshape(ifm_units, ofm_units, rounded, unit, 8).transpose(1, 3, 2, 0, 4)
        return piece.reshape(ofm_units * unit, rounded, ifm_units * 8)
    ifm_units = 2 if layout.ifm_16bit else 4
    piece = stream.take(ofm_units * elements * ifm_units * unit * 8)
    piece = piece.reshape(ofm_units, elements, ifm_units, unit, 8).transpose(0, 3, 1, 2, 4)
    return piece.reshape(ofm_units * unit, elements, ifm_units * 8)
