"""Operations of the U85.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0); arithmetic
as the TOSA reference model has it. "(inferred)" marks what only comparison confirms.

Every elementwise operand has a scale of its own, comparisons give 0 or -1. DIV rounds toward zero,
as TOSA's INTDIV (inferred); nobody has confirmed a divisor of zero.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from harness.formats.ethosu import NpuConfig
from harness.npu.feature_map import chaining_buffer, feature_map
from harness.npu.fields import (
    broadcasting,
    element_type,
    is_bricks,
    kernel_window,
    ofm_shape,
    pool,
    reciprocal,
    require_shorts,
    source_size,
)
from harness.npu.job import (
    INT8,
    INT16,
    INT32,
    UNARY,
    Accumulators,
    Axis,
    Copy,
    Job,
    LookUp,
    Operand,
    Output,
    Resize,
    Window,
    largest_result,
)
from harness.npu.kernel_library import enumerator
from harness.npu.scale import UNIT, Scale
from harness.npu.stream import Operation, Registers, register_set
from harness.npu.u85_weights import (
    channel_scales,
    checked_scale,
    input_scale,
    ofm_rounding,
    ofm_scale,
    require_rounding,
    weight_reader,
)

_TILE2X2, _TILE3X1, _CHAINED, _NONE = range(4)
_INITIAL = ("kZero", "kKept", "kMap")  # ACC_FORMAT.acc_input
_BROADCAST_SCALAR = 8
# OFM_PRECISION.activation_transpose: the source of each axis of the result
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
_INPUT_SCALED = frozenset({"ADD", "SUB", "MIN", "MAX"})


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
        stored = broadcasting(shape, broadcast)
        source = feature_map(registers, prefix, stored, dtype, is_bricks(registers, register))
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
        code = registers.bits("OFM_PRECISION", 11, 3)
        raise registers.unsupported("OFM_PRECISION.activation_transpose", code)
    function, number = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 5, 3)
    if function and (function not in _TABLES or _TABLES[function][1] != dtype):
        raise registers.unsupported("ACTIVATION.activation_function", function)
    index_type, _, size = _TABLES[function] if function else (dtype, dtype, 0)
    zero_point = registers.signed16("OFM_ZERO_POINT")
    ofm, reverse = None, registers.bits("OFM_PRECISION", 9, 2)
    moved = [order != (0, 1, 2), reverse != 0, storage == _CHAINED]
    if sum(moved) > 1:  # regor's GenerateOFMPrecision asserts that no two meet
        raise registers.unsupported("OFM_PRECISION", registers["OFM_PRECISION"], "two orders")
    if storage == _TILE2X2:
        stored = (shape[order[0]], shape[order[1]], shape[order[2]])
        bricks = is_bricks(registers, "OFM_PRECISION")
        ofm = feature_map(registers, "OFM", stored, dtype, bricks)
    elif storage == _CHAINED:
        ofm = chaining_buffer(registers["OFM_REGION"] & 7, shape, dtype)
    return Output(
        map=ofm,
        shape=shape,
        index_type=index_type,
        zero_point=zero_point,
        clamp=_clamp(registers, index_type),
        look_up=LookUp(number, number * size, size) if function else None,
        axis=order,
        reverse=reverse,
    )


def _clamp(registers: Registers, dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """Clip range B16 clamps to the registers; NONE leaves the result as it is."""
    if registers.bits("ACTIVATION", 12):
        return None
    low, high = registers.signed16("ACTIVATION_MIN"), registers.signed16("ACTIVATION_MAX")
    if dtype.itemsize > 2:
        high &= 0xFFFF
    if low > high:
        raise registers.unsupported("ACTIVATION_MIN", low, "above ACTIVATION_MAX")
    limits = np.iinfo(dtype)
    return max(low, int(limits.min)), min(high, int(limits.max))


def prepare_accumulators(registers: Registers, shape: tuple[int, int, int]) -> Accumulators:
    """ACC_FORMAT: the initial sums, their width, and whether they are kept."""
    form, source = registers.bits("ACC_FORMAT", 0, 2), registers.bits("ACC_FORMAT", 4, 2)
    if form > 1 or source >= len(_INITIAL):
        raise registers.unsupported("ACC_FORMAT", registers["ACC_FORMAT"])
    return Accumulators(
        bits=48 if form else 32,
        initial=_INITIAL[source],
        source=prepare_operand(registers, "IFM2", shape) if source == 2 else None,
        keeps=bool(registers.bits("ACC_FORMAT", 6)),
    )


def prepare_elementwise(operation: Operation, registers: Registers) -> Job:
    mode = register_set("u85").elementwise.get(operation.parameter & 63)
    if mode is None:
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", operation.parameter & 63)
    shape = ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    scales = _input_scales(mode, registers)
    first = prepare_operand(registers, "IFM", shape, registers["IFM_BROADCAST"] & 15, scales[0])
    second = None
    if mode not in UNARY:
        broadcast = registers["IFM2_BROADCAST"] & 15
        second = prepare_operand(registers, "IFM2", shape, broadcast, scales[1])
    output = prepare_output(registers, shape)
    halves = True
    if mode == "SHR":  # OFM_SCALE only has its rounding
        halves = require_rounding(registers, "OFM_SCALE", ofm_rounding(registers))
    bits = 8 * first.dtype.itemsize
    return Job(
        kind="kElementwise",
        offset=registers.offset,
        combine=enumerator(mode),
        bits=bits,
        halves=halves,
        first=first,
        second=second,
        output=output,
        limit=largest_result(mode, first, second, bits),
        scaling=UNIT if mode == "SHR" else ofm_scale(registers),
    )


def _input_scales(mode: str, registers: Registers) -> tuple[Scale, Scale]:
    if mode in _INPUT_SCALED:
        return input_scale(registers, "IFM_SCALE"), input_scale(registers, "IFM2_SCALE")
    names = ("IFM_SCALE",) if mode in UNARY else ("IFM_SCALE", "IFM2_SCALE")
    for name in names:
        if not input_scale(registers, name).is_unit:
            raise registers.unsupported(name, registers[name], f"in {mode}")
    return UNIT, UNIT


_BILINEAR, _REPLICATE, _NEAREST = range(3)  # RESIZE


def prepare(operation: Operation, registers: Registers, config: NpuConfig) -> Job:
    """Return the job of an operation. Raises Unsupported for behaviour that is not confirmed."""
    if operation.name == "CONV" and operation.parameter & 1:
        return _prepare_matmul(registers)
    if operation.name in ("CONV", "DEPTHWISE"):
        return _prepare_convolution(registers, config, operation.name == "DEPTHWISE")
    if operation.name == "POOL":
        return _prepare_pool(operation, registers)
    if operation.name == "ELEMENTWISE":
        return prepare_elementwise(operation, registers)
    if operation.name == "RESIZE":
        return _prepare_resize(operation, registers)
    if operation.name == "DMA_START":
        return _prepare_dma(registers)
    raise registers.unsupported(operation.name, operation.parameter)


def _prepare_input(registers: Registers, window: Window, depth: int) -> Operand:
    height, width = source_size(registers, window)
    return prepare_operand(registers, "IFM", (height, width, depth))


def _ifm_depth(registers: Registers) -> int:
    return registers["IFM_DEPTH_M1"] + 1


def _prepare_convolution(registers: Registers, config: NpuConfig, depthwise: bool) -> Job:
    window, shape = kernel_window(registers), ofm_shape(registers)
    ifm = _prepare_input(registers, window, shape[2] if depthwise else _ifm_depth(registers))
    require_shorts(registers, "IFM", ifm.dtype, ifm.zero_point)
    scales = channel_scales(registers, shape[2])
    reader = weight_reader(registers, config, window, ifm, scales, depthwise)
    return Job(
        kind="kDepthwise" if depthwise else "kConvolution",
        offset=registers.offset,
        first=ifm,
        window=window,
        output=prepare_output(registers, shape),
        accumulators=prepare_accumulators(registers, shape),
        parameters=reader,
        macs=math.prod(shape) * window.elements * (1 if depthwise else ifm.shape[2]),
    )


def _prepare_matmul(registers: Registers) -> Job:
    """Return a CONV whose weights are IFM2: the positions of IFM2 are the output channels."""
    window, shape = kernel_window(registers), ofm_shape(registers)
    if not window.is_pointwise:
        raise registers.unsupported("KERNEL", window.kernel, "with weights in IFM2")
    if registers["IFM_UPSCALE"]:
        raise registers.unsupported("IFM_UPSCALE", window.upscale, "with weights in IFM2")
    depth = _ifm_depth(registers)
    ifm = _prepare_input(registers, window, depth)
    columns = registers["IFM2_WIDTH0_M1"] + 1
    rows = shape[2] // columns if shape[2] % columns == 0 else 0
    if rows < 1 or rows != registers["IFM2_HEIGHT0_M1"] + 1:
        raise registers.unsupported("IFM2_WIDTH0_M1", columns - 1, f"{shape[2]} channels")
    other = prepare_operand(registers, "IFM2", (rows, columns, depth))
    for operand in (ifm, other):
        require_shorts(registers, operand.what, operand.dtype, operand.zero_point)
    scales = channel_scales(registers, shape[2])
    return Job(
        kind="kMatrixProduct",
        offset=registers.offset,
        first=ifm,
        second=other,
        window=window,
        output=prepare_output(registers, shape),
        accumulators=prepare_accumulators(registers, shape),
        limit=ifm.limit * other.limit * depth,
        macs=shape[0] * shape[1] * shape[2] * depth,
        scaling=scales.of_all,
        parameters=scales.reader,
    )


def _prepare_pool(operation: Operation, registers: Registers) -> Job:
    mode = register_set("u85").pooling[operation.parameter & 7]
    if mode.startswith("ARGMAX"):
        raise registers.unsupported("POOL.pooling_mode", mode)
    window, shape = kernel_window(registers), ofm_shape(registers)
    accumulators, output = prepare_accumulators(registers, shape), prepare_output(registers, shape)
    ifm = None
    if mode != "NONE":
        depth = _ifm_depth(registers) if mode == "REDUCE_SUM" else shape[2]
        if mode == "REDUCE_SUM" and shape[2] != 1:
            raise registers.unsupported("OFM_DEPTH_M1", shape[2] - 1, "in a REDUCE_SUM")
        ifm = _prepare_input(registers, window, depth)
        if ifm.dtype == INT32 and mode == "AVERAGE":
            raise registers.unsupported("IFM_PRECISION", ifm.dtype, "in AVERAGE pooling")
    elif accumulators.initial != "kMap":
        raise registers.unsupported("ACC_FORMAT.acc_input", "not IFM2", "POOL NONE")
    scales = channel_scales(registers, shape[2])
    scaling = scales.of_all
    if mode == "AVERAGE":
        if scales.reader is not None or not scaling.is_unit:
            raise registers.unsupported("OFM_SCALE", registers["OFM_SCALE"], "AVERAGE")
        scaling = reciprocal(registers, window, 30)
    job = pool(mode, registers.offset, window, ifm, output, accumulators, scaling)
    return replace(job, parameters=scales.reader)


def _prepare_resize(operation: Operation, registers: Registers) -> Job:
    """TOSA's arithmetic times 2**16, which OFM_SCALE takes off (inferred)."""
    mode = operation.parameter & 3
    if mode not in (_BILINEAR, _NEAREST):
        raise registers.unsupported("RESIZE.resize_mode", mode)
    shape = ofm_shape(registers)
    height, width = registers["KERNEL_HEIGHT_M1"] + 1, registers["KERNEL_WIDTH_M1"] + 1
    ifm = prepare_operand(registers, "IFM", (height, width, shape[2]))
    rows, columns = _axis(registers, "Y"), _axis(registers, "X")
    return Job(
        kind="kResize",
        offset=registers.offset,
        first=ifm,
        output=prepare_output(registers, shape),
        resize=Resize(mode == _BILINEAR, rows, columns),
        limit=ifm.limit * (rows.n * columns.n if mode == _BILINEAR else 1),
        scaling=_rest_of_scale(registers),
    )


def _rest_of_scale(registers: Registers) -> Scale:
    """OFM_SCALE without the shift by 16, which is exact with every rounding."""
    value = registers["OFM_SCALE"]
    multiplier, shift = value & 0x7FFFFFFF, value >> 32 & 63
    if multiplier != 1 or shift < 16:
        raise registers.unsupported("OFM_SCALE", (multiplier, shift), "in RESIZE")
    rest = value - (16 << 32)
    return checked_scale(registers, "OFM_SCALE", multiplier, rest, ofm_rounding(registers))


def _axis(registers: Registers, axis: str) -> Axis:
    n = registers[f"RESIZE_{axis}_SCALE_N_M1"] + 1
    step = registers[f"RESIZE_{axis}"]
    whole, rest = step >> 32 & 15, step & 0x7FF
    offset = registers[f"RESIZE_{axis}_OFFSET"] & 0xFFF
    offset -= (offset & 0x800) << 1
    return Axis(n, whole * n + rest, offset)


def _prepare_dma(registers: Registers) -> Job:
    source, target = registers["DMA0_SRC_REGION"], registers["DMA0_DST_REGION"]
    if source >> 8 & 1:
        raise registers.unsupported("DMA0_SRC_REGION.region_mode", "INTERNAL")
    mode = source >> 9 & 3
    gather, scatter = bool(source >> 11 & 1), bool(target >> 11 & 1)
    length, indexed, strided = registers["DMA0_LEN"], gather or scatter, mode != 0
    rows = registers["DMA0_SIZE0"] if strided or indexed else 1
    planes = registers["DMA0_SIZE1"] if mode == 2 else 1
    if mode == 3 or min(length, rows, planes) < 1 or (gather and scatter):
        raise registers.unsupported("DMA0 sizes", (mode, length, rows, planes))
    if indexed and mode == 2 and registers.get("DMA0_IDX_SKIP1"):
        raise registers.unsupported("DMA0_IDX_SKIP1", registers["DMA0_IDX_SKIP1"])
    copy = Copy(
        length=length,
        rows=rows,
        planes=planes,
        source_region=source & 7,
        source=registers["DMA0_SRC"],
        source_row=registers["DMA0_SRC_STRIDE0"] if strided or gather else length,
        source_plane=registers["DMA0_SRC_STRIDE1"] if mode == 2 else 0,
        internal=bool(target >> 8 & 1),
        target_region=target & 7,
        target=registers["DMA0_DST"],
        target_row=registers["DMA0_DST_STRIDE0"] if strided or scatter else length,
        target_plane=registers["DMA0_DST_STRIDE1"] if mode == 2 else 0,
        indexed="kGather" if gather else "kScatter" if scatter else "kNone",
        index_region=registers["DMA0_IDX_REGION"] & 7 if indexed else 0,
        indices=registers["DMA0_IDX"] if indexed else 0,
        largest_index=registers["DMA0_IDX_MAX"] & 0x7FFFFFFF if indexed else 0,
    )
    return Job("kCopy", registers.offset, copy=copy)
