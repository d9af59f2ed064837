"""Reads weights of the U85 as (ofm, y, x, ifm), and scales: OFM_SCALE, inputs, channel records.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0). The
order is the one of ``EthosU85WeightOrdering`` in regor's ``ethos_u85_weight_encoder.cpp``
(Vela 5.1.0); ``kernel/reorder_u85.cpp`` follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.tables import read_table
from harness.formats.ethosu import NpuConfig
from harness.npu.fields import weight_span
from harness.npu.job import Operand, ParameterReader, Parameters, Span, Window
from harness.npu.kernel_library import WeightDecoder, WeightLayout, Weights
from harness.npu.scale import UNIT, Integers, Scale, little_endian, scale_records, single_scale
from harness.npu.stream import Registers

_ROUNDING = (
    "DOUBLE_SYMMETRIC",
    "NATURAL",
    "DOUBLE_ASYMMETRIC",
    "SYMMETRIC",
    "TRUNCATE_TO_ZERO",
    "TRUNCATE_TO_LOWER",
)


def ofm_rounding(registers: Registers) -> str:
    code = registers["OFM_SCALE"] >> 45 & 7
    if code >= len(_ROUNDING):
        raise registers.unsupported("OFM_SCALE.round_mode", code)
    return _ROUNDING[code]


def ofm_scale(registers: Registers) -> Scale:
    value = registers["OFM_SCALE"]
    return checked_scale(registers, "OFM_SCALE", value & 0x7FFFFFFF, value, ofm_rounding(registers))


def input_scale(registers: Registers, register: str) -> Scale:
    value = registers[register]
    rounding = "NATURAL" if value >> 45 & 1 else "DOUBLE_SYMMETRIC"
    return checked_scale(registers, register, value & 0x7FFFFFFF, value, rounding)


def checked_scale(
    registers: Registers, register: str, multiplier: int, value: int, rounding: str
) -> Scale:
    """Return a scale whose rounding is confirmed (NATURAL, TRUNCATE_TO_LOWER), or a factor of 1."""
    shift, double = value >> 32 & 63, value >> 38 & 31
    if (multiplier, shift) in ((1, 0), ((1 << 30), 30)):
        return UNIT
    if double:
        raise registers.unsupported(f"{register}.dbl_rnd", double)
    return single_scale(multiplier, shift, halves=require_rounding(registers, register, rounding))


def require_rounding(registers: Registers, register: str, rounding: str) -> bool:
    """Whether a half is added before the shift."""
    if rounding not in ("NATURAL", "TRUNCATE_TO_LOWER"):
        why = "with a scale that is not 1"
        raise registers.unsupported(f"{register}.round_mode", rounding, why)
    return rounding == "NATURAL"


@dataclass(frozen=True)
class ChannelScales:
    """OFM_SCALE, or a record with a bias for each channel.

    ``spans``: the place of the records, if there are any. ``of_all``: the scale without records."""

    registers: Registers
    depth: int
    of_all: Scale
    spans: tuple[Span, ...]

    @property
    def layout(self) -> tuple[object, ...]:
        if not self.spans:
            whole = self.of_all
            return whole.multiplier.tobytes(), whole.shift.tobytes(), whole.halves
        return self.depth, self._wide, ofm_rounding(self.registers)

    @property
    def reader(self) -> ParameterReader | None:
        """The reader for an operation without weights; None without records."""

        def decode(_: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
            return Parameters(None, *self.parse(contents))

        return ParameterReader(self.layout, self.spans, 0, decode) if self.spans else None

    def parse(self, contents: Sequence[bytes]) -> tuple[Scale, Integers | None]:
        if not self.spans:
            return self.of_all, None
        fields = scale_records(contents[0], self.depth, self.registers.offset)
        width = 6 if self._wide else 4
        bias = little_endian(fields[:, :width])
        bias -= (bias >> (8 * width - 1)) << (8 * width)
        multiplier = little_endian(fields[:, width:8])
        shift = fields[:, 8].astype(np.int64) & 63
        scale = Scale(multiplier & ((1 << (15 if self._wide else 31)) - 1), shift)
        if scale.is_unit:
            return UNIT, bias
        halves = require_rounding(self.registers, "OFM_SCALE", ofm_rounding(self.registers))
        return Scale(scale.multiplier, shift, halves), bias

    @property
    def _wide(self) -> bool:
        return self.registers.bits("ACC_FORMAT", 0, 2) == 1


def channel_scales(registers: Registers, depth: int) -> ChannelScales:
    if registers.bits("OFM_PRECISION", 8):
        return ChannelScales(registers, depth, ofm_scale(registers), ())
    region, length = registers["SCALE_REGION"] & 7, registers["SCALE_LENGTH"] & 0xFFFFF
    return ChannelScales(registers, depth, UNIT, ((region, registers["SCALE_BASE"], length),))


@dataclass(frozen=True)
class LayoutU85(WeightLayout):
    macs: int
    ifm_bits: int
    sparse: bool
    fast: bool
    stride: tuple[int, int]

    @property
    def streams(self) -> int:
        return int(read_table(__file__)[self.macs]["streams"])

    @property
    def ifm_block(self) -> int:
        """No register has it: the rule of ``FindBlockConfig`` in ``ethos_u85.cpp``."""
        if self.part_kernel:
            return 16
        if self.ifm_bits == 32 or (self.macs <= 256 and self.ofm_unit == 16 and not self.sparse):
            return 32
        return 128 if self.sparse and self.ifm_bits == 8 else 64

    @property
    def ifm_unit(self) -> int:
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
    def padding(self) -> int:
        """Rows of padding after every ten kernel elements."""
        if not self.depthwise or (self.ifm_bits != 16 and self.macs <= 256):
            return 0
        return 2 if self.macs <= 512 else 6

    @property
    def encoded(self) -> int:
        """The weights that the operation reads of each stream."""
        return self.read(self.ifm_unit, self.rounding, self.padding) // self.streams

    @property
    def phase(self) -> tuple[int, int]:
        """Strides between which the elements of a sub-kernel take turns."""
        return self.stride if self.part_kernel or self.depthwise else (1, 1)

    @property
    def ifm_step(self) -> int:
        return 1 if self.depthwise else 16 if self.sparse else 8


def weight_reader(
    registers: Registers,
    config: NpuConfig,
    window: Window,
    ifm: Operand,
    scales: ChannelScales,
    depthwise: bool,
) -> ParameterReader:
    """Return the reader for the weights of a convolution, and its scales."""
    microblock = registers.bits("ACC_FORMAT", 8, 3)
    unit = read_table(__file__)[config.macs]["depth"].get(microblock)
    if unit is None:
        raise registers.unsupported("ACC_FORMAT.microblock", microblock)
    if ifm.map is None:
        raise registers.unsupported("IFM_PRECISION.activation_storage", "not TILE2X2")
    form, offset = registers["WEIGHT_FORMAT"], registers.offset
    layout = LayoutU85(
        macs=config.macs,
        ofm_depth=scales.depth,
        kernel=window.kernel,
        ifm_depth=1 if depthwise else ifm.shape[2],
        ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
        ofm_unit=unit,
        ifm_bits=8 * ifm.dtype.itemsize,
        part_kernel=bool(registers.bits("KERNEL_STRIDE", 2)) and not depthwise,
        depthwise=depthwise,
        sparse=bool(form >> 4 & 1),
        fast=bool(form & 1),
        dilation=window.dilation,
        stride=window.stride,
    )
    count = 1 if layout.fast else layout.streams

    def decode(decoder: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        if layout.fast:
            streams = deinterleave(decoder.decode_fast(contents[0], offset), layout)
        else:
            streams = [decoder.decode(p, layout.encoded, offset) for p in contents[:count]]
        weights = decoder.order_u85(streams, layout, offset)
        return Parameters(weights, *scales.parse(contents[count:]))

    spans = [weight_span(registers, "WEIGHT", number) for number in ("", "1", "2", "3")[:count]]
    return ParameterReader((layout, *scales.layout), [*spans, *scales.spans], count, decode)


def deinterleave(values: Weights, layout: LayoutU85) -> list[Weights]:
    """Separates the streams of the fast format, which takes a block of each in turn."""
    count = layout.streams
    if count == 1:
        return [values]
    size = layout.ofm_unit * layout.ifm_unit * layout.rounding // count
    turns = values[: len(values) // (size * count) * size * count].reshape(-1, count, size)
    return [turns[:, n].reshape(-1) for n in range(count)]
