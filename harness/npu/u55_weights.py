"""Reads weights and scales of the U55 and U65; weights as (ofm, y, x, ifm).

The order is the one of ``EthosUWeightOrdering`` in regor's ``ethos_u55_weight_encoder.cpp``
(Vela 5.1.0); ``kernel/reorder_u55.cpp`` follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.formats.ethosu import NpuConfig
from harness.npu.fields import weight_span
from harness.npu.job import INT16, Operand, ParameterReader, Parameters, Window
from harness.npu.kernel_library import WeightDecoder, WeightLayout, Weights
from harness.npu.scale import RECORD_BYTES, Scale, little_endian, scale_records
from harness.npu.stream import Registers


@dataclass(frozen=True)
class LayoutU55(WeightLayout):
    ifm_16bit: bool
    cores: int = 1

    @property
    def form(self) -> int:
        """OrderU55.form."""
        return 2 if self.depthwise else 1 if self.part_kernel else 0

    @property
    def ifm_block(self) -> int:
        if self.depthwise:
            return 1
        return 16 if self.part_kernel or self.ifm_16bit else 32

    @property
    def ifm_units(self) -> int:
        return self.ifm_block // 8

    @property
    def rounding(self) -> int:
        """Kernel elements of a sub-kernel are rounded up to a multiple of this."""
        if self.depthwise:
            return 4
        if self.part_kernel:
            return 2 if self.ifm_16bit else 4
        return 1

    @property
    def encoded(self) -> int:
        """The weights that the operation reads of one core's stream."""
        return self.read(8 if self.part_kernel else self.ifm_block, self.rounding)

    @property
    def channel_stride(self) -> int:
        return self.cores * self.kernel[0] * self.kernel[1] * self.ifm_depth

    def of_core(self, core: int) -> LayoutU55:
        """Return the layout of one core: its output channels, and those of a block."""
        depth = len(range(core, self.ofm_depth, self.cores))
        block = (self.ofm_block + self.cores - 1 - core) // self.cores
        return replace(self, ofm_depth=depth, ofm_block=block)


def weight_reader(
    registers: Registers,
    config: NpuConfig,
    window: Window,
    ifm: Operand,
    depth: int,
    depthwise: bool,
) -> ParameterReader:
    """Return the reader for a convolution with ``depth`` output channels."""
    dual = config.product == "u65" and registers.get("PARALLEL_MODE") == 1
    layout = LayoutU55(
        ofm_depth=depth,
        kernel=window.kernel,
        ifm_depth=1 if depthwise else ifm.shape[2],
        ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
        ofm_unit=4 if config.macs == 32 else 8,
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
        streams = [
            decoder.decode(part, layout.of_core(core).encoded, offset)
            for core, part in enumerate(contents[:cores])
        ]
        weights = ordered_weights(decoder, streams, layout, offset)
        return Parameters(weights, *_scale(contents[cores:], layout, offset))

    numbers = ("", "1")[:cores]
    spans = [weight_span(registers, kind, n) for kind in ("WEIGHT", "SCALE") for n in numbers]
    return ParameterReader(layout, spans, cores, decode)


def _scale(
    records: Sequence[bytes], layout: LayoutU55, offset: int
) -> tuple[Scale, NDArray[np.int64]]:
    """Read records of an int40 bias, u32 scale and u6 shift."""
    depth, cores = layout.ofm_depth, layout.cores
    fields = np.zeros((depth, RECORD_BYTES), np.uint8)
    for core, part in enumerate(records):
        fields[core::cores] = scale_records(part, len(range(core, depth, cores)), offset)
    bias = little_endian(fields[:, :5])
    bias -= (bias >> 39) << 40
    multiplier = little_endian(fields[:, 5:9])
    return Scale(multiplier, fields[:, 9].astype(np.int64) & 63), bias


def ordered_weights(
    decoder: WeightDecoder, streams: Sequence[Weights], layout: LayoutU55, offset: int
) -> Weights:
    """Orders one decoded stream per core as (ofm, y, x, ifm): channel c is core c % cores' work.

    Raises AccessError."""
    whole = np.zeros((layout.ofm_depth, *layout.kernel, layout.ifm_depth), np.int16)
    for core, stream in enumerate(streams):
        own = layout.of_core(core)
        if own.ofm_depth:
            decoder.order_u55(stream, own, whole, core, offset)
    return whole
