"""Operations of the U85.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0); arithmetic
as the TOSA reference model has it. "(inferred)" marks what only comparison confirms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate as acc
from harness.ethosu.common import (
    INT8,
    INT16,
    INT32,
    Array,
    Context,
    divisors,
    kernel_window,
    largest_input,
    ofm_shape,
    upscale,
    upscaled_source,
)
from harness.ethosu.errors import AccessError
from harness.ethosu.output_stage import Integers, Scale
from harness.ethosu.plan import (
    ConvolutionPlan,
    CopyPlan,
    MatrixPlan,
    PoolPlan,
    Prepared,
)
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u85.elementwise import prepare_elementwise
from harness.ethosu.u85.resize import prepare_resize
from harness.ethosu.u85.stages import (
    IFM2,
    Accumulators,
    ScaleReader,
    Source,
    prepare_output,
    prepare_source,
)
from harness.ethosu.u85.weights import KernelReader, ReaderU85
from harness.formats.cop import NpuConfig

POOLING = dict(
    enumerate(("MAX", "AVERAGE", "REDUCE_SUM", "SUM", "NONE", "MIN", "ARGMAX_X", "ARGMAX_Y"))
)


def prepare(operation: Operation, registers: Registers, config: NpuConfig) -> Prepared:
    if operation.name == "CONV" and operation.parameter & 1:
        return _prepare_matmul(registers)
    if operation.name in ("CONV", "DEPTHWISE"):
        return _prepare_convolution(registers, config, operation.name == "DEPTHWISE")
    if operation.name == "POOL":
        return _prepare_pool(operation, registers)
    if operation.name == "ELEMENTWISE":
        return prepare_elementwise(operation, registers)
    if operation.name == "RESIZE":
        return prepare_resize(operation, registers)
    if operation.name == "DMA_START":
        return prepare_dma(registers)
    raise registers.unsupported(operation.name, operation.parameter)


def _prepare_input(registers: Registers, needed: tuple[int, int], depth: int) -> Source:
    height, width = upscaled_source(registers, needed)
    return prepare_source(registers, "IFM", (height, width, depth))


def _prepare_convolution(registers: Registers, config: NpuConfig, depthwise: bool) -> Prepared:
    window, shape = kernel_window(registers), ofm_shape(registers)
    depth = shape[2] if depthwise else registers["IFM_DEPTH_M1"] + 1
    ifm = _prepare_input(registers, window.needed, depth)
    if ifm.dtype not in (INT8, INT16):
        raise registers.unsupported("IFM_PRECISION", ifm.dtype)
    mode, accumulators = registers["IFM_UPSCALE"], Accumulators(registers, shape)
    kernels = KernelReader(registers, config, window, ifm, shape[2], depthwise)
    scales = ScaleReader(registers, shape[2])
    output = prepare_output(registers, shape)
    macs = shape[0] * shape[1] * shape[2] * window.kernel[0] * window.kernel[1]
    macs *= 1 if depthwise else depth

    def run(context: Context) -> None:
        kernel = kernels.read(context)
        limit = kernel.weight_sum * largest_input(ifm.dtype, ifm.zero_point)
        dtype = acc.precision(limit)
        if dtype is None:
            raise registers.unsupported("accumulator", limit)
        values = acc.centred(ifm.read(context), ifm.zero_point, dtype)
        values = upscale(values, mode, window.needed)
        convolve = acc.convolve_depthwise if depthwise else acc.convolve
        sums, limit = accumulators.add(context, convolve(values, kernel, window), limit)
        context.macs += macs
        output.store(context, sums, limit, *scales.read(context))

    way_out = output.plan(shape)
    if way_out is None or ifm.source is None or not accumulators.plain:
        return Prepared(run, chains=output.buffer)
    plan = ConvolutionPlan(
        depthwise=depthwise,
        ifm=ifm.source,
        zero_point=ifm.zero_point,
        upscale=mode,
        window=window,
        accumulator_bits=accumulators.bits,
        parameters=ReaderU85(kernels, scales),
        output=way_out,
        macs=macs,
    )
    return Prepared(run, plan, output.buffer)


def _prepare_matmul(registers: Registers) -> Prepared:
    """CONV whose weights are IFM2: its positions are the output channels."""
    window, shape = kernel_window(registers), ofm_shape(registers)
    if window.kernel != (1, 1) or not window.is_pointwise:
        raise registers.unsupported("KERNEL", window.kernel, "with weights in IFM2")
    depth = registers["IFM_DEPTH_M1"] + 1
    ifm = _prepare_input(registers, window.needed, depth)
    columns = registers["IFM2_WIDTH0_M1"] + 1
    rows = shape[2] // columns if shape[2] % columns == 0 else 0
    if rows < 1 or rows != registers["IFM2_HEIGHT0_M1"] + 1:
        raise registers.unsupported("IFM2_WIDTH0_M1", columns - 1, f"{shape[2]} channels")
    other = prepare_source(registers, "IFM2", (rows, columns, depth))
    if ifm.dtype not in (INT8, INT16) or other.dtype not in (INT8, INT16):
        raise registers.unsupported("IFM_PRECISION", (ifm.dtype, other.dtype))
    accumulators, scales = Accumulators(registers, shape), ScaleReader(registers, shape[2])
    output = prepare_output(registers, shape)
    limit = largest_input(ifm.dtype, ifm.zero_point) * depth
    limit *= largest_input(other.dtype, other.zero_point)
    dtype = acc.precision(limit)
    macs = shape[0] * shape[1] * shape[2] * depth

    def run(context: Context) -> None:
        if dtype is None:
            raise registers.unsupported("accumulator", limit)
        left = acc.centred(ifm.read(context), ifm.zero_point, dtype).reshape(-1, depth)
        right = acc.centred(other.read(context), other.zero_point, dtype).reshape(-1, depth)
        sums, bound = accumulators.add(context, (left @ right.T).reshape(shape), limit)
        context.macs += macs
        output.store(context, sums, bound, *scales.read(context))

    way_out, scale = output.plan(shape), scales.whole
    bounded = limit < 2.0 ** (accumulators.bits - 1) and accumulators.plain
    if way_out is None or scale is None or not bounded or registers["IFM_UPSCALE"]:
        return Prepared(run, chains=output.buffer)
    if ifm.source is None or other.source is None:
        return Prepared(run, chains=output.buffer)
    plan = MatrixPlan(
        ifm=ifm.source,
        zero_point=ifm.zero_point,
        other=other.source,
        other_zero_point=other.zero_point,
        window=window,
        limit=limit,
        scale=scale,
        output=way_out,
        macs=macs,
    )
    return Prepared(run, plan, output.buffer)


def _prepare_pool(operation: Operation, registers: Registers) -> Prepared:
    mode = POOLING[operation.parameter & 7]
    if mode.startswith("ARGMAX"):
        raise registers.unsupported("POOL.pooling_mode", mode)
    window, shape = kernel_window(registers), ofm_shape(registers)
    accumulators, scales = Accumulators(registers, shape), ScaleReader(registers, shape[2])
    output = prepare_output(registers, shape)
    if mode == "NONE":
        if registers.bits("ACC_FORMAT", 4, 2) != IFM2:
            raise registers.unsupported("ACC_FORMAT.acc_input", "not IFM2", "POOL NONE")

        def copy(context: Context) -> None:
            sums, bound = accumulators.add(context, None, 0.0)
            output.store(context, sums, bound, *scales.read(context))

        return Prepared(copy, chains=output.buffer)
    depth = registers["IFM_DEPTH_M1"] + 1 if mode == "REDUCE_SUM" else shape[2]
    if mode == "REDUCE_SUM" and shape[2] != 1:
        raise registers.unsupported("OFM_DEPTH_M1", shape[2] - 1, "in a REDUCE_SUM")
    ifm, upscaling = _prepare_input(registers, window.needed, depth), registers["IFM_UPSCALE"]
    if ifm.dtype == INT32 and mode == "AVERAGE":
        raise registers.unsupported("IFM_PRECISION", ifm.dtype, "in AVERAGE pooling")
    average = _reciprocal(divisors(registers, window)) if mode == "AVERAGE" else None
    elements = 1 if mode in ("MAX", "MIN") else window.kernel[0] * window.kernel[1]
    elements *= depth if mode == "REDUCE_SUM" else 1
    limit = largest_input(ifm.dtype, ifm.zero_point) * elements

    def run(context: Context) -> None:
        raw = ifm.read(context)
        wide: Array = raw.astype(np.int64 if limit >= 1 << 31 else np.int32)
        values = wide - ifm.zero_point
        sums = _pool(mode, upscale(values, upscaling, window.needed), window)
        sums, bound = accumulators.add(context, sums, limit)
        scale, bias = scales.read(context)
        if average is not None:
            if not scale.is_unit or bias is not None:
                raise registers.unsupported("OFM_SCALE", registers["OFM_SCALE"], "AVERAGE")
            scale = average
        output.store(context, sums, bound, scale, bias)

    way_out, scale = output.plan(shape), scales.whole
    if way_out is None or scale is None or ifm.source is None or not accumulators.plain:
        return Prepared(run, chains=output.buffer)
    if average is not None:
        if not scale.is_unit:
            return Prepared(run, chains=output.buffer)
        scale = average
    plan = PoolPlan(
        mode=mode,
        ifm=ifm.source,
        zero_point=ifm.zero_point,
        upscale=upscaling,
        window=window,
        limit=limit,
        scale=scale,
        output=way_out,
        accumulator_bits=accumulators.bits,
    )
    return Prepared(run, plan, output.buffer)


def _pool(mode: str, values: Array, window: acc.Window) -> Array:
    if mode in ("MAX", "MIN"):
        return acc.pool_extreme(values, window, largest=mode == "MAX")
    sums = values if window.is_pointwise else acc.pool_sum(values, window)
    return sums.sum(2, keepdims=True) if mode == "REDUCE_SUM" else sums


def _reciprocal(counts: Integers) -> Scale:
    """1 / n as TOSA's AVG_POOL2D divides."""
    bits = np.ceil(np.log2(counts)).astype(np.int64)
    one = np.int64(1)
    return Scale(((one << (30 + bits)) + (one << bits)) // counts, 30 + bits)


def prepare_dma(registers: Registers) -> Prepared:
    source, target = registers["DMA0_SRC_REGION"], registers["DMA0_DST_REGION"]
    if source >> 8 & 1:
        raise registers.unsupported("DMA0_SRC_REGION.region_mode", "INTERNAL")
    mode = source >> 9 & 3
    gather, scatter = bool(source >> 11 & 1), bool(target >> 11 & 1)
    length = registers["DMA0_LEN"]
    rows = registers["DMA0_SIZE0"] if mode or gather or scatter else 1
    planes = registers["DMA0_SIZE1"] if mode == 2 else 1
    bad = mode == 3 or min(length, rows, planes) < 1 or (gather and scatter)
    if bad:
        raise registers.unsupported("DMA0 sizes", (mode, length, rows, planes))
    if (gather or scatter) and mode == 2 and registers.get("DMA0_IDX_SKIP1"):
        raise registers.unsupported("DMA0_IDX_SKIP1", registers["DMA0_IDX_SKIP1"])
    indexed, strided = gather or scatter, mode != 0
    source_step = registers["DMA0_SRC_STRIDE0"] if strided or gather else length
    target_step = registers["DMA0_DST_STRIDE0"] if strided or scatter else length
    source_plane = registers["DMA0_SRC_STRIDE1"] if mode == 2 else 0
    target_plane = registers["DMA0_DST_STRIDE1"] if mode == 2 else 0
    start, end, offset = registers["DMA0_SRC"], registers["DMA0_DST"], registers.offset
    internal = bool(target >> 8 & 1)

    def run(context: Context) -> None:
        memory = context.memory
        indices = _indices(context, registers, rows * planes) if indexed else None
        pieces = []
        for plane in range(planes):
            for row in range(rows):
                index = int(indices[plane * rows + row]) if indices is not None else row
                at = start + plane * source_plane + (index if gather else row) * source_step
                to = end + plane * target_plane + (index if scatter else row) * target_step
                pieces.append((to, memory.read(source & 7, at, length, "DMA", offset).copy()))
        for to, piece in pieces:
            if internal:
                memory.write_internal(to, piece, offset)
            else:
                memory.write(target & 7, to, piece, "DMA", offset)

    if mode or indexed:
        return Prepared(run)
    place = None if internal else target & 7
    return Prepared(run, CopyPlan((source & 7, start, length), place, end))


def _indices(context: Context, registers: Registers, count: int) -> NDArray[np.int32]:
    region, at = registers["DMA0_IDX_REGION"] & 7, registers["DMA0_IDX"]
    data = context.memory.read(region, at, 4 * count, "DMA index", registers.offset)
    indices = np.frombuffer(data.tobytes(), np.int32)
    largest = registers["DMA0_IDX_MAX"] & 0x7FFFFFFF
    if indices.min() < 0 or indices.max() > largest:
        raise AccessError(f"a DMA index is outside 0..{largest}", registers.offset)
    return indices
