"""Weights of the U85: fetched, decoded or in its fast format, and back to (ofm, y, x, ifm).

The order is the one of ``EthosU85WeightOrdering`` in regor's ``ethos_u85_weight_encoder.cpp``,
the fast format the one of ``mlw_encode_fwd.cpp`` (Vela 5.1.0).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate as acc
from harness.ethosu.codec import WeightDecoder, Weights, WeightStream
from harness.ethosu.common import Context
from harness.ethosu.errors import AccessError
from harness.ethosu.plan import Parameters, Span
from harness.ethosu.stream import Registers
from harness.ethosu.u85.stages import ScaleReader, Source
from harness.formats.cop import NpuConfig

FAST_HEADER = 32
_GROUP = 4  # output channels that stand together
STREAMS = {128: 1, 256: 1, 512: 2, 1024: 4, 2048: 4}
# OFM microblock depth by (MACs, ACC_FORMAT.microblock), from s_EthosU85Configs in ethos_u85.cpp
UBLOCK_DEPTH = {
    (128, 1): 8,
    (128, 0): 16,
    (256, 1): 16,
    (256, 2): 8,
    (256, 3): 8,
    (512, 3): 16,
    (512, 2): 16,
    (1024, 3): 32,
    (1024, 2): 32,
    (1024, 4): 16,
    (2048, 3): 64,
    (2048, 2): 64,
    (2048, 5): 16,
}


@dataclass(frozen=True)
class WeightLayoutU85:
    macs: int
    ofm_depth: int
    kernel: tuple[int, int]
    ifm_depth: int
    ofm_block: int
    ofm_ublock: int
    ifm_bits: int
    part_kernel: bool
    depthwise: bool
    sparse: bool
    fast: bool
    dilation: tuple[int, int]
    stride: tuple[int, int]

    @property
    def streams(self) -> int:
        return STREAMS[self.macs]

    @property
    def ifm_block(self) -> int:
        """In no register; the rule of ``FindBlockConfig`` in ``ethos_u85.cpp``."""
        if self.part_kernel:
            return 16
        if self.ifm_bits == 32 or (self.macs <= 256 and self.ofm_ublock == 16 and not self.sparse):
            return 32
        return 128 if self.sparse and self.ifm_bits == 8 else 64

    @property
    def ifm_ublock(self) -> int:
        if self.depthwise:
            return 1
        if self.part_kernel and self.ifm_bits == 16 and not self.sparse:
            return 8
        return self.ifm_block

    @property
    def rounding(self) -> int:
        """Kernel elements of a sub-kernel are rounded up to a multiple of this."""
        if self.depthwise:
            return 10
        if self.part_kernel:
            return 10 if self.ifm_bits == 16 or self.sparse else 5
        return 1

    @property
    def depthwise_padding(self) -> int:
        """Rows of padding after every ten kernel elements."""
        if not self.depthwise or (self.ifm_bits != 16 and self.macs <= 256):
            return 0
        return 2 if self.macs <= 512 else 6

    @property
    def phases(self) -> tuple[int, int]:
        """Strides between which the elements of a sub-kernel take turns."""
        return self.stride if self.part_kernel or self.depthwise else (1, 1)

    @property
    def room(self) -> tuple[int, int, int, int]:
        """Of all that a stream holds, padding included."""
        ofm = self.ofm_depth + max(self.ofm_block, self.ofm_ublock) + self.ofm_ublock
        ifm_depth = 1 if self.depthwise else self.ifm_depth
        return ofm, *self.kernel, ifm_depth + self.ifm_block

    @property
    def ifm_step(self) -> int:
        return 1 if self.depthwise else 16 if self.sparse else 8


class KernelReader:
    """Fetches, decodes and reorders weights; decoded once per content."""

    def __init__(
        self,
        registers: Registers,
        config: NpuConfig,
        window: acc.Window,
        ifm: Source,
        depth: int,
        depthwise: bool,
    ) -> None:
        microblock = registers.bits("ACC_FORMAT", 8, 3)
        ublock = UBLOCK_DEPTH.get((config.macs, microblock))
        if ublock is None:
            raise registers.unsupported("ACC_FORMAT.microblock", microblock)
        if ifm.source is None:
            raise registers.unsupported("IFM_PRECISION.activation_storage", "not TILE2X2")
        form = registers["WEIGHT_FORMAT"]
        self._registers = registers
        self._layout = WeightLayoutU85(
            macs=config.macs,
            ofm_depth=depth,
            kernel=window.kernel,
            ifm_depth=ifm.source.shape[2],
            ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
            ofm_ublock=ublock,
            ifm_bits=8 * ifm.dtype.itemsize,
            part_kernel=bool(registers.bits("KERNEL_STRIDE", 2)) and not depthwise,
            depthwise=depthwise,
            sparse=bool(form >> 4 & 1),
            fast=bool(form & 1),
            dilation=window.dilation,
            stride=window.stride,
        )
        count = 1 if self._layout.fast else self._layout.streams
        names = ("", "1", "2", "3")[:count]
        lengths = [(registers[f"WEIGHT{n}_LENGTH"] & 0xFFFFFFFF, n) for n in names]
        region = registers["WEIGHT_REGION"] & 7
        self.spans = [
            (region, registers[f"WEIGHT{n}_BASE"] if length else 0, length) for length, n in lengths
        ]

    @property
    def layout(self) -> WeightLayoutU85:
        return self._layout

    def read(self, context: Context) -> acc.Kernel:
        encoded = tuple(self._fetch(context, span) for span in self.spans)
        key = (self._layout, encoded)
        found = context.decoded.get(key)
        if found is None:
            build = acc.depthwise_kernel if self._layout.depthwise else acc.convolution_kernel
            found = context.decoded[key] = build(self.decode(context.codec, encoded))
        return found  # type: ignore[return-value]

    def _fetch(self, context: Context, span: Span) -> bytes:
        if not span[2]:
            return b""
        return context.memory.read(*span, "WEIGHT", self._registers.offset).tobytes()

    def decode(self, codec: WeightDecoder, encoded: Sequence[bytes]) -> Weights:
        """As (ofm, y, x, ifm)."""
        offset = self._registers.offset
        if self._layout.fast:
            found = codec.fast(encoded[0])
            values = decode_fast(encoded[0], offset) if found is None else found
            streams = deinterleave(values, self._layout)
        else:
            streams = [codec.decode(part, offset) for part in encoded]
        weights = codec.reordered(streams, self._layout)
        return reorder_u85(streams, self._layout, offset) if weights is None else weights


@dataclass(frozen=True)
class ReaderU85:
    """Of weights and scales together."""

    kernels: KernelReader
    scales: ScaleReader

    @property
    def layout(self) -> tuple[WeightLayoutU85, Hashable]:
        return self.kernels.layout, self.scales.layout

    @property
    def spans(self) -> list[Span]:
        return [*self.kernels.spans, *self.scales.spans]

    @property
    def weight_spans(self) -> int:
        return len(self.kernels.spans)

    def decode(self, codec: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        count = len(self.kernels.spans)
        weights = self.kernels.decode(codec, contents[:count])
        return Parameters(weights, *self.scales.decode(contents[count:]))


def decode_fast(encoded: bytes, offset: int) -> Weights:
    if len(encoded) < FAST_HEADER:
        raise AccessError("the fast weight header is cut short", offset)
    header = int.from_bytes(encoded[:FAST_HEADER], "little")
    items = np.frombuffer(encoded, np.uint8)[FAST_HEADER:]
    if header & 1:
        adjust = header >> 104 & 0xFF
        return items.view(np.int8).astype(np.int16) - (adjust - 256 if adjust & 128 else adjust)
    bits = 2 if header & 2 else 4
    folded = [header >> 112 + 9 * n & 0x1FF for n in range(16)]
    table = np.array([-(f >> 1) if f & 1 else f >> 1 for f in folded], np.int16)
    shifts = np.arange(0, 8, bits)
    of_byte = table[np.arange(256)[:, None] >> shifts & ((1 << bits) - 1)]
    result: Weights = of_byte.view(f"i{16 // bits}")[items, 0].view(np.int16)
    return result


def deinterleave(values: Weights, layout: WeightLayoutU85) -> list[Weights]:
    """The fast format has the streams in one, in turns of a block each."""
    count = layout.streams
    if count == 1:
        return [values]
    size = layout.ofm_ublock * layout.ifm_ublock * layout.rounding // count
    turns = values[: len(values) // (size * count) * size * count].reshape(-1, count, size)
    return [turns[:, n].reshape(-1) for n in range(count)]


def reorder_u85(streams: Sequence[Weights], layout: WeightLayoutU85, offset: int) -> Weights:
    height, width = layout.kernel
    ifm_depth = 1 if layout.depthwise else layout.ifm_depth
    whole = np.zeros(layout.room, np.int16)
    takers = [WeightStream(values, offset) for values in streams]
    ifm_blocks = list(range(0, ifm_depth, layout.ifm_block))
    for ofm in range(0, layout.ofm_depth, layout.ofm_block):
        for ifm in ifm_blocks:
            for x in range(0, width, 8 // layout.dilation[1]):
                for y in range(0, height, 8 // layout.dilation[0]):
                    size = (
                        min(height - y, 8 // layout.dilation[0]),
                        min(width - x, 8 // layout.dilation[1]),
                    )
                    _place(takers, layout, whole, (ofm, y, x, ifm), size)
        ifm_blocks.reverse()  # serpentine
    for taker in takers:
        if not layout.fast:
            taker.finish()
    if whole[layout.ofm_depth :].any() or whole[..., ifm_depth:].any():
        raise AccessError("a weight in a padding position is not 0", offset)
    return whole[: layout.ofm_depth, :, :, :ifm_depth]


def _place(
    takers: Sequence[WeightStream],
    layout: WeightLayoutU85,
    whole: Weights,
    corner: tuple[int, int, int, int],
    size: tuple[int, int],
) -> None:
    """One sub-kernel of one OFM block and IFM block, from all streams."""
    ofm, y, x, ifm = corner
    ofm_units = -(-min(layout.ofm_block, layout.ofm_depth - ofm) // layout.ofm_ublock)
    ifm_units = 1
    if not layout.depthwise:
        ifm_units = -(-min(layout.ifm_block, layout.ifm_depth - ifm) // layout.ifm_ublock)
    order = np.array(element_order(size, layout))
    groups = layout.ofm_ublock // (_GROUP * layout.streams)
    inner = layout.ifm_ublock // layout.ifm_step
    depth = ifm_units * layout.ifm_ublock
    count = ofm_units * layout.ofm_ublock
    target = whole[ofm : ofm + count, :, :, ifm : ifm + depth]
    for number, taker in enumerate(takers):
        piece = _take_elements(taker, layout, (ifm_units, ofm_units), len(order))
        shape = (ifm_units, ofm_units, len(order), inner, groups, _GROUP, layout.ifm_step)
        piece = piece.reshape(shape).transpose(1, 4, 5, 2, 0, 3, 6)
        channels = _channels(layout, ofm_units, groups, number)
        rows, columns = y + order[:, 0], x + order[:, 1]
        target[channels[:, None], rows, columns] = piece.reshape(-1, len(order), depth)


def _channels(
    layout: WeightLayoutU85, ofm_units: int, groups: int, number: int
) -> NDArray[np.int64]:
    """Output channels of stream ``number`` inside an OFM block, in stream order."""
    unit = np.arange(ofm_units)[:, None, None] * layout.ofm_ublock
    group = (np.arange(groups)[:, None] * layout.streams + number) * _GROUP
    channels: NDArray[np.int64] = (unit + group + np.arange(_GROUP)).reshape(-1)
    return channels


def _take_elements(
    taker: WeightStream, layout: WeightLayoutU85, units: tuple[int, int], elements: int
) -> Weights:
    """(units of ifm and ofm, kernel element, rest), without the rounding and the padding."""
    rounded = -(-elements // layout.rounding) * layout.rounding
    row = layout.ifm_ublock * layout.ofm_ublock // layout.streams
    groups = rounded // layout.rounding
    tall = layout.rounding + layout.depthwise_padding
    piece = taker.take(units[0] * units[1] * groups * tall * row)
    piece = piece.reshape(units[0] * units[1], groups, tall, row)
    taker.require_zero(piece[:, :, layout.rounding :])
    piece = piece[:, :, : layout.rounding].reshape(units[0] * units[1], rounded, row)
    taker.require_zero(piece[:, elements:])
    return piece[:, :elements]


def element_order(size: tuple[int, int], layout: WeightLayoutU85) -> list[tuple[int, int]]:
    """(y, x) of a sub-kernel: one stride phase after the other, x in serpentine."""
    stride_y, stride_x = layout.phases
    order = []
    for phase_y in range(stride_y):
        for phase_x in range(stride_x):
            ys = range(phase_y, size[0], stride_y)
            xs = list(range(phase_x, size[1], stride_x))
            for index, y in enumerate(ys):
                order += [(y, x) for x in (xs if index % 2 == 0 else reversed(xs))]
    return order
