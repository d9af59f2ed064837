"""Weights and scales of the U55 and U65, as (ofm, y, x, ifm).

The order is the one of ``EthosUWeightOrdering`` in regor's ``ethos_u55_weight_encoder.cpp``
(Vela 5.1.0); ``kernel/reorder_u55.cpp`` follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.formats.ethosu import NpuConfig
from harness.npu.job import INT16, Operand, ParameterReader, Parameters, Span, Window
from harness.npu.kernel_library import WeightDecoder, Weights, layouts
from harness.npu.scale import RECORD_BYTES, Scale, little_endian, scale_records
from harness.npu.stream import Registers


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


def weight_reader(
    registers: Registers,
    config: NpuConfig,
    window: Window,
    ifm: Operand,
    depth: int,
    depthwise: bool,
) -> ParameterReader:
    """Of a convolution with ``depth`` output channels."""
    dual = config.product == "u65" and registers.get("PARALLEL_MODE") == 1
    layout = WeightLayout(
        ofm_depth=depth,
        kernel=window.kernel,
        ifm_depth=ifm.shape[2],
        ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
        ofm_ublock=4 if config.macs == 32 else 8,
        ifm_16bit=ifm.dtype == INT16,
        part_kernel=bool(registers.bits("KERNEL_STRIDE", 2)) and not depthwise,
        depthwise=depthwise,
        dilation=window.dilation,
        cores=2 if dual else 1,
    )
    cores, offset = layout.cores, registers.offset
    if layout.ofm_block < cores:
        raise registers.unsupported("OFM_BLK_DEPTH_M1", 0, "of two cores")

    def decode(decoder: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        streams = [decoder.decode(part, offset) for part in contents[:cores]]
        weights = ordered_weights(decoder, streams, layout, offset)
        return Parameters(weights, *_scale(contents[cores:], layout, offset))

    spans = [_span(registers, kind, n) for kind in ("WEIGHT", "SCALE") for n in range(cores)]
    return ParameterReader(layout, spans, cores, decode)


def _scale(
    records: Sequence[bytes], layout: WeightLayout, offset: int
) -> tuple[Scale, NDArray[np.int64]]:
    """A record is an int40 bias, u32 scale and u6 shift."""
    depth, cores = layout.ofm_depth, layout.cores
    fields = np.zeros((depth, RECORD_BYTES), np.uint8)
    for core, part in enumerate(records):
        fields[core::cores] = scale_records(part, len(range(core, depth, cores)), offset)
    bias = little_endian(fields[:, :5])
    bias -= (bias >> 39) << 40
    multiplier = little_endian(fields[:, 5:9])
    return Scale(multiplier, fields[:, 9].astype(np.int64) & 63), bias


def ordered_weights(
    decoder: WeightDecoder, streams: Sequence[Weights], layout: WeightLayout, offset: int
) -> Weights:
    """As (ofm, y, x, ifm), from one decoded stream per core: channel c belongs to core c % cores.
    Raises AccessError."""
    height, width = layout.kernel
    whole = np.zeros((layout.ofm_depth, height, width, layout.stored_depth), np.int16)
    form = 2 if layout.depthwise else 1 if layout.part_kernel else 0
    for core, stream in enumerate(streams):
        depth, block = layout.of_core(core)
        if not depth:
            continue
        order = layouts().structures["OrderU55"](
            depth=depth,
            height=height,
            width=width,
            ifm_depth=layout.stored_depth,
            ofm_block=block,
            ofm_unit=layout.ofm_ublock,
            ifm_block=layout.ifm_block,
            ifm_units=layout.ifm_block // 8,
            step_y=8 // layout.dilation[0],
            step_x=8 // layout.dilation[1],
            rounding=layout.rounding,
            form=form,
            channel_stride=layout.cores * height * width * layout.stored_depth,
        )
        decoder.order_u55(stream, order, whole, core, offset)
    return whole


def _span(registers: Registers, kind: str, core: int) -> Span:
    number = "1" if core else ""
    length = registers[f"{kind}{number}_LENGTH"] & 0xFFFFFFFF
    address = registers[f"{kind}{number}_BASE"] if length else 0
    return registers[f"{kind}_REGION"] & 7, address, length
