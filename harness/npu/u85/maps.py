"""Inputs, output and accumulators of the U85: storage modes, tables, transpose, reverse.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.npu.feature_map import chaining_buffer, feature_map
from harness.npu.fields import element_type, is_bricks
from harness.npu.job import INT8, INT16, INT32, Accumulators, LookUp, Operand, Output
from harness.npu.scale import UNIT, Scale
from harness.npu.stream import Registers

_TILE2X2, _TILE3X1, _CHAINED, _NONE = range(4)
_INITIAL = ("kZero", "kKept", "kMap")  # ACC_FORMAT.acc_input
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


def prepare_operand(
    registers: Registers,
    prefix: str,
    shape: tuple[int, int, int],
    broadcast: int = 0,
    scale: Scale = UNIT,
) -> Operand:
    register = f"{prefix}_PRECISION"
    dtype, storage = element_type(registers, register, 2), registers.bits(register, 14, 2)
    zero_point = registers.signed16(f"{prefix}_ZERO_POINT")
    source, buffer, scalar = None, None, 0
    if broadcast & ~15 or (bool(broadcast & _BROADCAST_SCALAR) != (storage == _NONE)):
        raise registers.unsupported(f"{prefix}_BROADCAST", broadcast, f"with storage {storage}")
    if storage == _TILE2X2:
        height, width, depth = (
            1 if broadcast >> bit & 1 else size for bit, size in enumerate(shape)
        )
        bricks = is_bricks(registers, register)
        source = feature_map(registers, prefix, (height, width, depth), dtype, bricks)
    elif storage == _CHAINED:
        buffer = registers[f"{prefix}_REGION"] & 7
    elif storage == _NONE:
        scalar = registers["OP_SCALAR"] & 0xFFFFFFFF
        scalar -= (scalar & 1 << 31) << 1
    else:
        raise registers.unsupported(f"{register}.activation_storage", "TILE3X1")
    return Operand(prefix, source, dtype, zero_point, shape, scalar, buffer, scale)


def prepare_output(registers: Registers, shape: tuple[int, int, int]) -> Output:
    dtype = element_type(registers, "OFM_PRECISION", 1)
    storage = registers.bits("OFM_PRECISION", 14, 2)
    if storage == _TILE3X1:
        raise registers.unsupported("OFM_PRECISION.activation_storage", "TILE3X1")
    order = _TRANSPOSES.get(registers.bits("OFM_PRECISION", 11, 3))
    if order is None:
        raise registers.unsupported(
            "OFM_PRECISION.activation_transpose", registers.bits("OFM_PRECISION", 11, 3)
        )
    function, number = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 5, 3)
    if function and (function not in _TABLES or _TABLES[function][1] != dtype):
        raise registers.unsupported("ACTIVATION.activation_function", function)
    index_type, _, size = _TABLES[function] if function else (dtype, dtype, 0)
    zero_point = registers.signed16("OFM_ZERO_POINT")
    ofm, axis, reverse = None, order, registers.bits("OFM_PRECISION", 9, 2)
    if storage == _TILE2X2:
        stored = (shape[order[0]], shape[order[1]], shape[order[2]])
        bricks = is_bricks(registers, "OFM_PRECISION")
        ofm = feature_map(registers, "OFM", stored, dtype, bricks)
    elif storage == _CHAINED:
        ofm = chaining_buffer(registers["OFM_REGION"] & 7, shape, dtype)
        axis, reverse = (0, 1, 2), 0
    return Output(
        map=ofm,
        shape=shape,
        index_type=index_type,
        zero_point=zero_point,
        clamp=_clamp(registers, index_type),
        look_up=LookUp(number, number * size, size) if function else None,
        axis=axis,
        reverse=reverse,
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


def prepare_accumulators(registers: Registers, shape: tuple[int, int, int]) -> Accumulators:
    """ACC_FORMAT: what the sums start from, how wide they are, whether they are kept."""
    form, source = registers.bits("ACC_FORMAT", 0, 2), registers.bits("ACC_FORMAT", 4, 2)
    if form > 1 or source >= len(_INITIAL):
        raise registers.unsupported("ACC_FORMAT", registers["ACC_FORMAT"])
    return Accumulators(
        bits=48 if form else 32,
        initial=_INITIAL[source],
        source=prepare_operand(registers, "IFM2", shape) if source == 2 else None,
        keeps=bool(registers.bits("ACC_FORMAT", 6)),
    )
