"""The U85's ways in and out: storage modes, accumulators, scales, tables, transpose, reverse.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.ethosu.common import (
    INT8,
    INT16,
    INT32,
    Array,
    Context,
    check_accumulators,
    element_type,
    is_bricks,
)
from harness.ethosu.errors import AccessError
from harness.ethosu.featuremap import FeatureMap, chaining_buffer, feature_map
from harness.ethosu.output_stage import (
    UNIT,
    Finish,
    Integers,
    Scale,
    little_endian,
    look_up_8bit,
    look_up_16bit,
    scale_records,
    single_scale,
)
from harness.ethosu.plan import OperandPlan, OutputPlan, Span
from harness.ethosu.stream import Registers

ROUNDING_OFM = (
    "DOUBLE_SYMMETRIC",
    "NATURAL",
    "DOUBLE_ASYMMETRIC",
    "SYMMETRIC",
    "TRUNCATE_TO_ZERO",
    "TRUNCATE_TO_LOWER",
)
_TILE2X2, _TILE3X1, _CHAINED, _NONE = range(4)
_KEEP, IFM2 = 1, 2  # ACC_FORMAT.acc_input; 0 starts from nothing
_BROADCAST_SCALAR = 8
# where each axis of the result comes from: OFM_PRECISION.activation_transpose
_TRANSPOSES = {
    0: (0, 1, 2),  # HWC
    1: (1, 0, 2),  # WHC
    2: (0, 2, 1),  # HCW
    3: (1, 2, 0),  # WCH
    6: (2, 0, 1),  # CHW
    7: (2, 1, 0),  # CWH
}
# function: (type of the index, type of the result, bytes of one table)
_TABLES = {
    4: (INT8, INT8, 256),
    5: (INT8, INT16, 512),
    7: (INT8, INT32, 1024),
    8: (INT16, INT16, 2048),
    9: (INT16, INT32, 2048),
}


@dataclass(frozen=True)
class Source:
    """A feature map in memory, a chaining buffer, or a scalar."""

    source: FeatureMap | None
    buffer: int | None
    scalar: int
    zero_point: int
    dtype: np.dtype[Any]
    offset: int

    def read(self, context: Context) -> Array:
        """As stored; the zero point is not yet taken off."""
        if self.source is not None:
            return self.source.read(context.memory)
        if self.buffer is None:
            return np.full((1, 1, 1), self.scalar, np.int64)
        found = context.chained.get(self.buffer)
        if found is None:
            raise AccessError(f"chaining buffer {self.buffer} is empty", self.offset)
        return found

    def plan(self, scale: Scale = UNIT) -> OperandPlan:
        return OperandPlan(self.source, self.scalar, self.zero_point, scale, self.buffer)

    def read_wide(self, context: Context) -> Integers:
        return self.read(context).astype(np.int64) - self.zero_point


def prepare_source(
    registers: Registers, prefix: str, shape: tuple[int, int, int], broadcast: int = 0
) -> Source:
    register = f"{prefix}_PRECISION"
    dtype, storage = element_type(registers, register, 2), registers.bits(register, 14, 2)
    zero_point = registers.signed16(f"{prefix}_ZERO_POINT")
    source, buffer, scalar = None, None, 0
    if broadcast & ~15 or (bool(broadcast & _BROADCAST_SCALAR) != (storage == _NONE)):
        raise registers.unsupported(f"{prefix}_BROADCAST", broadcast, f"with storage {storage}")
    if storage == _TILE2X2:
        axes = (shape[0], 1), (shape[1], 1), (shape[2], 1)
        height, width, depth = (
            axis[1] if broadcast >> bit & 1 else axis[0] for bit, axis in enumerate(axes)
        )
        source = feature_map(
            registers, prefix, (height, width, depth), dtype, is_bricks(registers, register)
        )
    elif storage == _CHAINED:
        buffer = registers[f"{prefix}_REGION"] & 7
    elif storage == _NONE:
        scalar = registers["OP_SCALAR"] & 0xFFFFFFFF
        scalar -= (scalar & 1 << 31) << 1
    else:
        raise registers.unsupported(f"{register}.activation_storage", "TILE3X1")
    return Source(source, buffer, scalar, zero_point, dtype, registers.offset)


@dataclass(frozen=True)
class OutputU85:
    registers: Registers
    ofm: FeatureMap | None
    buffer: int | None
    dtype: np.dtype[Any]
    zero_point: int
    clamp: tuple[int, int] | None
    function: int
    table: int
    transpose: tuple[int, int, int]
    reverse: int

    def store(
        self,
        context: Context,
        sums: Array,
        limit: float,
        scale: Scale,
        bias: Integers | None,
    ) -> None:
        if self.ofm is None and self.buffer is None:
            return
        dtype = _TABLES[self.function][0] if self.function else self.dtype
        finish = Finish(scale, self.zero_point, self.clamp, dtype, bias)
        result = finish.apply(sums, limit)
        if self.function:
            result = self._look_up(context, result)
        context.condition = bool(result.any()) if result.size == 1 else None
        if self.buffer is not None:
            context.chained[self.buffer] = result
            return
        result = result.transpose(self.transpose)
        if self.reverse:
            result = np.flip(result, self.reverse - 1)
        assert self.ofm is not None
        self.ofm.write(context.memory, result)

    def plan(self, shape: tuple[int, int, int]) -> OutputPlan | None:
        """None: nothing comes out."""
        ofm = self.ofm
        if self.buffer is not None:
            ofm = chaining_buffer(self.buffer, shape, self.dtype, self.registers.offset)
        if ofm is None:
            return None
        index, _, size = _TABLES[self.function] if self.function else (self.dtype, self.dtype, 0)
        return OutputPlan(
            ofm=ofm,
            shape=shape,
            index_type=index,
            zero_point=self.zero_point,
            clamp=self.clamp,
            table=(self.table * size, size) if self.function else None,
            axes=self.transpose if self.buffer is None else (0, 1, 2),
            reverse=self.reverse if self.buffer is None else 0,
        )

    def _look_up(self, context: Context, indices: Array) -> Array:
        index, dtype, size = _TABLES[self.function]
        start = self.table * size
        if start + size > len(context.memory.internal):
            raise AccessError(f"table {self.table} does not fit the RAM", self.registers.offset)
        table = context.memory.internal[start : start + size]
        look_up = look_up_16bit if index == INT16 else look_up_8bit
        return look_up(indices, table, dtype)


def prepare_output(registers: Registers, shape: tuple[int, int, int]) -> OutputU85:
    dtype = element_type(registers, "OFM_PRECISION", 1)
    storage = registers.bits("OFM_PRECISION", 14, 2)
    if storage == _TILE3X1:
        raise registers.unsupported("OFM_PRECISION.activation_storage", "TILE3X1")
    order = _TRANSPOSES.get(registers.bits("OFM_PRECISION", 11, 3))
    if order is None:
        raise registers.unsupported(
            "OFM_PRECISION.activation_transpose", registers.bits("OFM_PRECISION", 11, 3)
        )
    function, table = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 5, 3)
    if function and (function not in _TABLES or _TABLES[function][1] != dtype):
        raise registers.unsupported("ACTIVATION.activation_function", function)
    stored = (shape[order[0]], shape[order[1]], shape[order[2]])
    ofm = None
    if storage == _TILE2X2:
        bricks = is_bricks(registers, "OFM_PRECISION")
        ofm = feature_map(registers, "OFM", stored, dtype, bricks)
    return OutputU85(
        registers=registers,
        ofm=ofm,
        buffer=registers["OFM_REGION"] & 7 if storage == _CHAINED else None,
        dtype=dtype,
        zero_point=registers.signed16("OFM_ZERO_POINT"),
        clamp=_clamp(registers, _TABLES[function][0] if function else dtype),
        function=function,
        table=table,
        transpose=order,
        reverse=registers.bits("OFM_PRECISION", 9, 2),
    )


def _clamp(registers: Registers, dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """Clip range B16 clamps to the registers; NONE leaves the result as it is."""
    if registers.bits("ACTIVATION", 12):
        return None
    low, high = registers.signed16("ACTIVATION_MIN"), registers["ACTIVATION_MAX"] & 0xFFFF
    if dtype.itemsize <= 2 or high == 0xFFFF or low < 0:
        high = high - 0x10000 if high & 0x8000 and dtype.itemsize <= 2 else high
    if low > high:
        raise registers.unsupported("ACTIVATION_MIN", low, "above ACTIVATION_MAX")
    limits = np.iinfo(dtype)
    return max(low, int(limits.min)), min(high, int(limits.max))


def ofm_rounding(registers: Registers) -> str:
    code = registers["OFM_SCALE"] >> 45 & 7
    if code >= len(ROUNDING_OFM):
        raise registers.unsupported("OFM_SCALE.round_mode", code)
    return ROUNDING_OFM[code]


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


class Accumulators:
    """ACC_FORMAT: what the sums start from, how wide they are, whether they go out."""

    def __init__(self, registers: Registers, shape: tuple[int, int, int]) -> None:
        form, self._input = registers.bits("ACC_FORMAT", 0, 2), registers.bits("ACC_FORMAT", 4, 2)
        if form > 1 or self._input > IFM2:
            raise registers.unsupported("ACC_FORMAT", registers["ACC_FORMAT"])
        self.bits = 48 if form else 32
        self._keeps = bool(registers.bits("ACC_FORMAT", 6))
        self._registers = registers
        self._shape = shape
        self._source = prepare_source(registers, "IFM2", shape) if self._input == IFM2 else None

    @property
    def plain(self) -> bool:
        """Whether they start from nothing and nothing of them is kept."""
        return self._input == 0 and not self._keeps

    def add(self, context: Context, sums: Array | None, limit: float) -> tuple[Array, float]:
        """The finished sums and their bound; ``None`` stands for no sums of its own."""
        start = self._start(context)
        if start is not None:
            sums = start if sums is None else start + sums.astype(np.int64)
            limit = max(-float(sums.min()), float(sums.max()))
        assert sums is not None
        check_accumulators(sums, limit, self.bits, self._registers.offset)
        context.accumulators = sums.astype(np.int64) if self._keeps else None
        return sums, limit

    def _start(self, context: Context) -> Integers | None:
        if self._source is not None:
            return self._source.read_wide(context)
        if self._input != _KEEP:
            return None
        kept = context.accumulators
        if kept is None or kept.shape != self._shape:
            raise self._registers.unsupported("ACC_FORMAT.acc_input", "KEEP", "nothing was kept")
        return kept.astype(np.int64)


class ScaleReader:
    """OFM_SCALE, or one record per channel with a bias."""

    def __init__(self, registers: Registers, depth: int) -> None:
        self._registers, self._depth = registers, depth
        self._global = bool(registers.bits("OFM_PRECISION", 8))
        self._wide = registers.bits("ACC_FORMAT", 0, 2) == 1
        if self._global:
            self._scale = ofm_scale(registers)
        else:
            self._span = (
                registers["SCALE_REGION"] & 7,
                registers["SCALE_BASE"],
                registers["SCALE_LENGTH"] & 0xFFFFF,
            )

    @property
    def whole(self) -> Scale | None:
        """The scale that is the same for all channels, if it is."""
        return self._scale if self._global else None

    @property
    def layout(self) -> tuple[object, ...]:
        if self._global:
            scale = self._scale
            return scale.multiplier.item(), scale.shift.item(), scale.halves
        return self._depth, self._wide, ofm_rounding(self._registers)

    @property
    def spans(self) -> list[Span]:
        return [] if self._global else [self._span]

    def decode(self, contents: Sequence[bytes]) -> tuple[Scale, Integers | None]:
        return (self._scale, None) if self._global else self._parse(contents[0])

    def read(self, context: Context) -> tuple[Scale, Integers | None]:
        if self._global:
            return self._scale, None
        offset = self._registers.offset
        data = context.memory.read(*self._span, "SCALE", offset).tobytes()
        key = ("scale", self._depth, self._wide, ofm_rounding(self._registers), data)
        found = context.decoded.get(key)
        if found is None:
            found = context.decoded[key] = self._parse(data)
        return found  # type: ignore[return-value]

    def _parse(self, data: bytes) -> tuple[Scale, Integers]:
        fields = scale_records(data, self._depth, self._registers.offset)
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
