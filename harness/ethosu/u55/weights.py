"""Weights and scales of the U55 and U65: fetched, decoded, and back to (ofm, y, x, ifm).

The order is the one of ``EthosUWeightOrdering`` in regor's ``ethos_u55_weight_encoder.cpp``
(Vela 5.1.0). Where it reads no weight it writes 0, which strict mode checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate as acc
from harness.ethosu.codec import WeightDecoder, Weights, WeightStream
from harness.ethosu.common import INT16, Context
from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.output_stage import RECORD_BYTES, Scale, little_endian, scale_records
from harness.ethosu.plan import Parameters, Span
from harness.ethosu.stream import Registers
from harness.formats.cop import NpuConfig


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

    @property
    def ifm_block(self) -> int:
        if self.depthwise:
            return 1
        return 16 if self.part_kernel or self.ifm_16bit else 32

    @property
    def stored_depth(self) -> int:
        """Input channels that have weights of their own."""
        return 1 if self.depthwise else self.ifm_depth

    @property
    def rounding(self) -> int:
        """Kernel elements of a sub-kernel are rounded up to a multiple of this."""
        if self.depthwise:
            return 4
        if self.part_kernel:
            return 2 if self.ifm_16bit else 4
        return 1

    def of_core(self, core: int) -> tuple[int, int]:
        """Output channels, and those of a block."""
        depth = len(range(core, self.ofm_depth, self.cores))
        return depth, (self.ofm_block + self.cores - 1 - core) // self.cores


class WeightReader:
    """Fetches, decodes and reorders weights and scales; decoded once per content."""

    def __init__(
        self,
        registers: Registers,
        config: NpuConfig,
        window: acc.Window,
        ifm: FeatureMap,
        depth: int,
        depthwise: bool,
    ) -> None:
        strides = registers["KERNEL_STRIDE"]
        dual = config.product == "u65" and registers.get("PARALLEL_MODE") == 1
        self._depthwise = depthwise
        self._offset = registers.offset
        self._layout = WeightLayout(
            ofm_depth=depth,
            kernel=window.kernel,
            ifm_depth=ifm.shape[2],
            ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
            ofm_ublock=4 if config.macs == 32 else 8,
            ifm_16bit=ifm.dtype == INT16,
            part_kernel=bool(strides >> 2 & 1) and not depthwise,
            depthwise=depthwise,
            dilation=window.dilation,
            cores=2 if dual else 1,
        )
        cores = range(self._layout.cores)
        self._weights = [_span(registers, "WEIGHT", core) for core in cores]
        self._scales = [_span(registers, "SCALE", core) for core in cores]

    @property
    def layout(self) -> WeightLayout:
        return self._layout

    @property
    def spans(self) -> list[Span]:
        return [*self._weights, *self._scales]

    @property
    def weight_spans(self) -> int:
        return len(self._weights)

    def read(self, context: Context) -> tuple[acc.Kernel, Scale, NDArray[np.int64]]:
        kinds = ["WEIGHT"] * len(self._weights) + ["SCALE"] * len(self._scales)
        contents = tuple(map(partial(self._fetch, context), self.spans, kinds))
        key = (self._layout, contents)
        found = context.decoded.get(key)
        if found is None:
            decoded = self.decode(context.codec, contents)
            make = acc.depthwise_kernel if self._depthwise else acc.convolution_kernel
            found = (make(decoded.weights), decoded.scale, decoded.bias)
            context.decoded[key] = found
        return found  # type: ignore[return-value]

    def decode(self, codec: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        cores = self._layout.cores
        streams = [codec.decode(part, self._offset) for part in contents[:cores]]
        weights = codec.reordered(streams, self._layout)
        if weights is None:
            weights = reorder(streams, self._layout, self._offset)
        return Parameters(weights, *self._scale(contents[cores:]))

    def _fetch(self, context: Context, span: Span, what: str) -> bytes:
        return context.memory.read(*span, what, self._offset).tobytes() if span[2] else b""

    def _scale(self, records: Sequence[bytes]) -> tuple[Scale, NDArray[np.int64]]:
        """A record is an int40 bias, u32 scale and u6 shift."""
        depth, cores = self._layout.ofm_depth, self._layout.cores
        fields = np.zeros((depth, RECORD_BYTES), np.uint8)
        for core, part in enumerate(records):
            count = len(range(core, depth, cores))
            fields[core::cores] = scale_records(part, count, self._offset)
        bias = little_endian(fields[:, :5])
        bias -= (bias >> 39) << 40
        multiplier = little_endian(fields[:, 5:9])
        return Scale(multiplier, fields[:, 9].astype(np.int64) & 63), bias


def _span(registers: Registers, kind: str, core: int) -> Span:
    number = "1" if core else ""
    length = registers[f"{kind}{number}_LENGTH"] & 0xFFFFFFFF
    address = registers[f"{kind}{number}_BASE"] if length else 0
    return registers[f"{kind}_REGION"] & 7, address, length


def reorder(streams: list[Weights], layout: WeightLayout, offset: int) -> Weights:
    """``streams`` has one decoded stream per core: channel c belongs to core c % cores."""
    height, width = layout.kernel
    whole = np.zeros((layout.ofm_depth, height, width, layout.stored_depth), np.int16)
    for core, values in enumerate(streams):
        depth, block = layout.of_core(core)
        if depth:
            stream = WeightStream(values, offset)
            whole[core :: layout.cores] = _reorder_core(stream, layout, depth, block)
            stream.finish()
    return whole


def _reorder_core(stream: WeightStream, layout: WeightLayout, depth: int, block: int) -> Weights:
    height, width = layout.kernel
    sub_y, sub_x = 8 // layout.dilation[0], 8 // layout.dilation[1]
    ifm_block, ifm_depth = layout.ifm_block, layout.stored_depth
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
    stream: WeightStream,
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
    stream: WeightStream, layout: WeightLayout, ofm_units: int, ifm_left: int, size: tuple[int, int]
) -> Weights:
    """One sub-kernel of one OFM block and IFM block, as (ofm, kernel element, ifm)."""
    unit, elements = layout.ofm_ublock, size[0] * size[1]
    rounded = -(-elements // layout.rounding) * layout.rounding
    if layout.depthwise:
        piece = stream.take(ofm_units * rounded * unit).reshape(ofm_units, rounded, unit)
        return piece.transpose(0, 2, 1).reshape(ofm_units * unit, rounded, 1)
    if layout.part_kernel:
        ifm_units = -(-min(ifm_left, 16) // 8)
        piece = stream.take(ifm_units * ofm_units * rounded * unit * 8)
        piece = piece.reshape(ifm_units, ofm_units, rounded, unit, 8).transpose(1, 3, 2, 0, 4)
        return piece.reshape(ofm_units * unit, rounded, ifm_units * 8)
    ifm_units = 2 if layout.ifm_16bit else 4
    piece = stream.take(ofm_units * elements * ifm_units * unit * 8)
    piece = piece.reshape(ofm_units, elements, ifm_units, unit, 8).transpose(0, 3, 1, 2, 4)
    return piece.reshape(ofm_units * unit, elements, ifm_units * 8)
