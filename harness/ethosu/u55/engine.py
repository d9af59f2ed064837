"""Operations of the U55 and U65.

Register meanings from regor's ``ethos_u55_register_cs_generator.cpp`` (Vela 5.1.0); arithmetic
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
    check_accumulators,
    divisors,
    element_type,
    is_bricks,
    kernel_window,
    largest_input,
    ofm_shape,
    upscale,
    upscaled_source,
)
from harness.ethosu.featuremap import FeatureMap, feature_map
from harness.ethosu.output_stage import Scale, single_scale
from harness.ethosu.plan import ConvolutionPlan, CopyPlan, PoolPlan, Prepared
from harness.ethosu.stream import Operation, Registers
from harness.ethosu.u55.elementwise import prepare_elementwise
from harness.ethosu.u55.stages import prepare_output
from harness.ethosu.u55.weights import WeightReader
from harness.formats.cop import NpuConfig

POOLING = {0: "MAX", 1: "AVERAGE", 2: "REDUCE_SUM"}


def prepare(operation: Operation, registers: Registers, config: NpuConfig) -> Prepared:
    if operation.name == "CONV":
        return _prepare_convolution(registers, config, depthwise=False)
    if operation.name == "DEPTHWISE":
        return _prepare_convolution(registers, config, depthwise=True)
    if operation.name == "POOL":
        return _prepare_pool(operation, registers)
    if operation.name == "ELEMENTWISE":
        return prepare_elementwise(operation, registers)
    if operation.name == "DMA_START":
        return prepare_dma(registers)
    raise registers.unsupported(operation.name, operation.parameter)


def _input(registers: Registers, needed: tuple[int, int], depth: int) -> FeatureMap:
    dtype = element_type(registers, "IFM_PRECISION", 2)
    height, width = upscaled_source(registers, needed)
    return feature_map(
        registers, "IFM", (height, width, depth), dtype, is_bricks(registers, "IFM_PRECISION")
    )


def _prepare_convolution(registers: Registers, config: NpuConfig, depthwise: bool) -> Prepared:
    window, shape = kernel_window(registers), ofm_shape(registers)
    ifm_depth = registers["IFM_DEPTH_M1"] + 1
    if depthwise and ifm_depth != shape[2]:
        raise registers.unsupported("IFM_DEPTH_M1", ifm_depth - 1, "depth multiplier")
    ifm = _input(registers, window.needed, ifm_depth)
    if ifm.dtype not in (INT8, INT16):
        raise registers.unsupported("IFM_PRECISION", ifm.dtype)
    zero_point, mode = registers.signed16("IFM_ZERO_POINT"), registers["IFM_UPSCALE"]
    kernels = WeightReader(registers, config, window, ifm, shape[2], depthwise)
    output = prepare_output(registers, shape)
    if registers.bits("OFM_PRECISION", 8):
        raise registers.unsupported("OFM_PRECISION.scale_mode", "GLOBAL", "in a convolution")
    bits = accumulator_bits(registers)
    macs = shape[0] * shape[1] * shape[2] * window.kernel[0] * window.kernel[1]
    macs *= 1 if depthwise else ifm_depth

    def run(context: Context) -> None:
        kernel, scale, bias = kernels.read(context)
        limit = kernel.weight_sum * largest_input(ifm.dtype, zero_point)
        dtype = acc.precision(limit)
        if dtype is None:
            raise registers.unsupported("accumulator", limit)
        values = acc.centred(ifm.read(context.memory), zero_point, dtype)
        values = upscale(values, mode, window.needed)
        convolve = acc.convolve_depthwise if depthwise else acc.convolve
        sums = convolve(values, kernel, window)
        check_accumulators(sums, limit, bits, registers.offset)
        context.macs += macs
        output.store(context, sums, limit, scale, bias)

    plan = ConvolutionPlan(
        depthwise=depthwise,
        ifm=ifm,
        zero_point=zero_point,
        upscale=mode,
        window=window,
        accumulator_bits=bits,
        parameters=kernels,
        output=output.plan(),
        macs=macs,
    )
    return Prepared(run, plan)


def accumulator_bits(registers: Registers) -> int:
    form = registers.bits("ACC_FORMAT", 0, 2)
    if form > 1:
        raise registers.unsupported("ACC_FORMAT", form)
    return 40 if form else 32


def _prepare_pool(operation: Operation, registers: Registers) -> Prepared:
    mode = POOLING.get(operation.parameter & 7)
    if mode is None:
        raise registers.unsupported("POOL.pooling_mode", operation.parameter & 7)
    window, shape = kernel_window(registers), ofm_shape(registers)
    depth = registers["IFM_DEPTH_M1"] + 1
    if mode == "REDUCE_SUM":
        if shape[2] != 1:
            raise registers.unsupported("OFM_DEPTH_M1", shape[2] - 1, "in a REDUCE_SUM")
    elif depth != shape[2]:
        raise registers.unsupported("IFM_DEPTH_M1", depth - 1, "differs from the OFM's")
    ifm = _input(registers, window.needed, depth)
    if ifm.dtype == INT32 and mode != "REDUCE_SUM":
        raise registers.unsupported("IFM_PRECISION", ifm.dtype, f"in {mode} pooling")
    if not registers.bits("OFM_PRECISION", 8):
        raise registers.unsupported("OFM_PRECISION.scale_mode", "PER_CHANNEL", "in a pool")
    zero_point, upscaling = registers.signed16("IFM_ZERO_POINT"), registers["IFM_UPSCALE"]
    output = prepare_output(registers, shape)
    scale = global_scale(registers)
    if mode == "AVERAGE" and any(window.pads):
        if not scale.is_unit:
            raise registers.unsupported("OFM_SCALE", registers["OFM_SCALE"], "padded AVERAGE")
        scale = reciprocal(divisors(registers, window))
    elements = 1 if mode == "MAX" else window.kernel[0] * window.kernel[1]
    elements *= depth if mode == "REDUCE_SUM" else 1
    limit = largest_input(ifm.dtype, zero_point) * elements

    def run(context: Context) -> None:
        raw = ifm.read(context.memory)
        wide: Array = raw.astype(np.int64 if limit >= 1 << 31 else np.int32)
        values = wide - zero_point
        values = upscale(values, upscaling, window.needed)
        if mode == "MAX":
            sums = acc.pool_extreme(values, window, largest=True)
        else:
            sums = values if window.is_pointwise else acc.pool_sum(values, window)
        if mode == "REDUCE_SUM":
            sums = sums.sum(2, keepdims=True)
        check_accumulators(sums, limit, 32, registers.offset)
        output.store(context, sums, limit, scale, None)

    way_out = output.plan()
    plan = PoolPlan(mode, ifm, zero_point, upscaling, window, limit, scale, way_out, 32)
    return Prepared(run, plan)


def reciprocal(counts: NDArray[np.int64]) -> Scale:
    """1 / n as the hardware divides in padded average pooling (inferred)."""
    bits = np.ceil(np.log2(counts)).astype(np.int64)
    one = np.int64(1)
    return Scale(((one << (31 + bits)) + (one << bits)) // counts, 31 + bits)


def global_scale(registers: Registers) -> Scale:
    value = registers["OFM_SCALE"]
    return single_scale(value & 0xFFFFFFFF, value >> 32 & 63)


def prepare_dma(registers: Registers) -> Prepared:
    """1-D copies, and U65's 2-D and 3-D writes: SKIP is the gap between two rows."""
    source, target = registers["DMA0_SRC_REGION"], registers["DMA0_DST_REGION"]
    if source >> 8 & 1:
        raise registers.unsupported("DMA0_SRC_REGION.region_mode", "INTERNAL")
    if source >> 9 & 3:
        raise registers.unsupported("DMA0_SRC_REGION.stride_mode", source >> 9 & 3)
    mode = target >> 9 & 3
    length = registers["DMA0_LEN"]
    rows = registers["DMA0_SIZE0"] if mode else 1
    planes = registers["DMA0_SIZE1"] if mode == 2 else 1
    if mode == 3 or min(length, rows, planes) < 1:
        raise registers.unsupported("DMA0 sizes", (mode, length, rows, planes))
    row_step = length + registers["DMA0_SKIP0"] if mode else length
    plane_step = row_step * rows + (registers["DMA0_SKIP1"] if mode == 2 else 0)
    start, end = registers["DMA0_SRC"], registers["DMA0_DST"]
    internal, offset = bool(target >> 8 & 1), registers.offset

    def run(context: Context) -> None:
        total = length * rows * planes
        data = context.memory.read(source & 7, start, total, "DMA", offset).copy()
        for plane in range(planes):
            for row in range(rows):
                at = end + plane * plane_step + row * row_step
                piece = data[(plane * rows + row) * length :][:length]
                if internal:
                    context.memory.write_internal(at, piece, offset)
                else:
                    context.memory.write(target & 7, at, piece, "DMA", offset)

    if mode:
        return Prepared(run)
    place = None if internal else target & 7
    return Prepared(run, CopyPlan((source & 7, start, length), place, end))
