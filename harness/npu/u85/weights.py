"""Weights of the U85, as (ofm, y, x, ifm).

The order is the one of ``EthosU85WeightOrdering`` in regor's ``ethos_u85_weight_encoder.cpp``
(Vela 5.1.0); ``kernel/reorder_u85.cpp`` follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.formats.cop import NpuConfig
from harness.npu.job import Operand, Parameters, Span, Window
from harness.npu.stream import Registers
from harness.npu.u85.scales import ScaleReader
from harness.npu.weight_decoder import OrderU85, WeightDecoder, Weights

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
class WeightLayout:
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
    def ifm_step(self) -> int:
        return 1 if self.depthwise else 16 if self.sparse else 8


class WeightReader:
    """Where weights and scales lie, and what they are."""

    def __init__(
        self,
        registers: Registers,
        config: NpuConfig,
        window: Window,
        ifm: Operand,
        scales: ScaleReader,
        depthwise: bool,
    ) -> None:
        microblock = registers.bits("ACC_FORMAT", 8, 3)
        ublock = UBLOCK_DEPTH.get((config.macs, microblock))
        if ublock is None:
            raise registers.unsupported("ACC_FORMAT.microblock", microblock)
        if ifm.map is None:
            raise registers.unsupported("IFM_PRECISION.activation_storage", "not TILE2X2")
        form = registers["WEIGHT_FORMAT"]
        self._offset, self._scales = registers.offset, scales
        self._order = WeightLayout(
            macs=config.macs,
            ofm_depth=scales.depth,
            kernel=window.kernel,
            ifm_depth=ifm.shape[2],
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
        count = 1 if self._order.fast else self._order.streams
        region = registers["WEIGHT_REGION"] & 7
        spans = [_span(registers, region, number) for number in ("", "1", "2", "3")[:count]]
        self.weight_spans = count
        self.spans = [*spans, *scales.spans]

    @property
    def layout(self) -> tuple[object, ...]:
        return self._order, *self._scales.layout

    def decode(self, decoder: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        encoded, layout = contents[: self.weight_spans], self._order
        if layout.fast:
            streams = deinterleave(decoder.decode_fast(encoded[0], self._offset), layout)
        else:
            streams = [decoder.decode(part, self._offset) for part in encoded]
        weights = ordered_weights(decoder, streams, layout, self._offset)
        return Parameters(weights, *self._scales.parse(contents[self.weight_spans :]))


def _span(registers: Registers, region: int, number: str) -> Span:
    length = registers[f"WEIGHT{number}_LENGTH"] & 0xFFFFFFFF
    return region, registers[f"WEIGHT{number}_BASE"] if length else 0, length


def deinterleave(values: Weights, layout: WeightLayout) -> list[Weights]:
    """The fast format has the streams in one, in turns of a block each."""
    count = layout.streams
    if count == 1:
        return [values]
    size = layout.ofm_ublock * layout.ifm_ublock * layout.rounding // count
    turns = values[: len(values) // (size * count) * size * count].reshape(-1, count, size)
    return [turns[:, n].reshape(-1) for n in range(count)]


def ordered_weights(
    decoder: WeightDecoder, streams: Sequence[Weights], layout: WeightLayout, offset: int
) -> Weights:
    """As (ofm, y, x, ifm). Raises AccessError."""
    order = OrderU85(
        depth=layout.ofm_depth,
        height=layout.kernel[0],
        width=layout.kernel[1],
        ifm_depth=1 if layout.depthwise else layout.ifm_depth,
        ofm_block=layout.ofm_block,
        ofm_unit=layout.ofm_ublock,
        ifm_block=layout.ifm_block,
        ifm_unit=layout.ifm_ublock,
        step_y=8 // layout.dilation[0],
        step_x=8 // layout.dilation[1],
        phase_y=layout.phases[0],
        phase_x=layout.phases[1],
        rounding=layout.rounding,
        padding=layout.depthwise_padding,
        ifm_step=layout.ifm_step,
        streams=len(streams),
    )
    return decoder.order_u85(streams, order, not layout.fast, offset)
