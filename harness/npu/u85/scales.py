"""Scales of the U85: OFM_SCALE, those of inputs, and records of each channel.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.npu.job import Parameters, Span
from harness.npu.scale import UNIT, Integers, Scale, little_endian, scale_records, single_scale
from harness.npu.stream import Registers
from harness.npu.weight_decoder import WeightDecoder

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
    """Only NATURAL and TRUNCATE_TO_LOWER are confirmed; a factor of 1 needs no rounding."""
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


class ScaleReader:
    """OFM_SCALE, or one record per channel with a bias. ``average``: what divides the sums of an
    average, which no scale may follow."""

    weight_spans = 0

    def __init__(self, registers: Registers, depth: int, average: Scale | None = None) -> None:
        self._registers, self.depth, self._average = registers, depth, average
        self._wide = registers.bits("ACC_FORMAT", 0, 2) == 1
        self.spans: list[Span] = []
        self.whole: Scale | None = None
        if registers.bits("OFM_PRECISION", 8):
            self.whole = self._divided(ofm_scale(registers), None)
        else:
            region, length = registers["SCALE_REGION"] & 7, registers["SCALE_LENGTH"] & 0xFFFFF
            self.spans = [(region, registers["SCALE_BASE"], length)]

    @property
    def of_all(self) -> Scale:
        """Of all channels, where there are no records."""
        return UNIT if self.whole is None else self.whole

    @property
    def reader(self) -> ScaleReader | None:
        """None: there are no records to be read."""
        return self if self.spans else None

    @property
    def layout(self) -> tuple[object, ...]:
        if self.whole is not None:
            return self.whole.multiplier.tobytes(), self.whole.shift.tobytes(), self.whole.halves
        average = None if self._average is None else self._average.multiplier.tobytes()
        return self.depth, self._wide, ofm_rounding(self._registers), average

    def decode(self, decoder: WeightDecoder, contents: Sequence[bytes]) -> Parameters:
        return Parameters(None, *self.parse(contents))

    def parse(self, contents: Sequence[bytes]) -> tuple[Scale, Integers | None]:
        if self.whole is not None:
            return self.whole, None
        scale, bias = self._records(contents[0])
        return self._divided(scale, bias), bias

    def _divided(self, scale: Scale, bias: Integers | None) -> Scale:
        if self._average is None:
            return scale
        if not scale.is_unit or bias is not None:
            value = self._registers["OFM_SCALE"]
            raise self._registers.unsupported("OFM_SCALE", value, "AVERAGE")
        return self._average

    def _records(self, data: bytes) -> tuple[Scale, Integers]:
        fields = scale_records(data, self.depth, self._registers.offset)
        width = 6 if self._wide else 4
        bias = little_endian(fields[:, :width])
        bias -= (bias >> (8 * width - 1)) << (8 * width)
        multiplier = little_endian(fields[:, width:8])
        shift = fields[:, 8].astype(np.int64) & 63
        scale = Scale(multiplier & ((1 << (15 if self._wide else 31)) - 1), shift)
        if scale.is_unit:
            return UNIT, bias
        rounding = ofm_rounding(self._registers)
        halves = require_rounding(self._registers, "OFM_SCALE", rounding)
        return Scale(scale.multiplier, shift, halves), bias
