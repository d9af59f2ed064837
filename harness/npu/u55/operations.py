"""Operations of the U55 and U65.

Register meanings from regor's ``ethos_u55_register_cs_generator.cpp`` (Vela 5.1.0); arithmetic
as the TOSA reference model has it. "(inferred)" marks what only comparison confirms.
"""

from __future__ import annotations

from harness.formats.cop import NpuConfig
from harness.npu.descriptor import enumerator
from harness.npu.feature_map import feature_map
from harness.npu.fields import (
    element_type,
    is_bricks,
    kernel_window,
    ofm_shape,
    reciprocal,
    require_shorts,
    source_size,
)
from harness.npu.job import INT32, Accumulators, Copy, Job, Operand, Window, of_padding
from harness.npu.stream import Operation, Registers
from harness.npu.u55.elementwise import prepare_elementwise
from harness.npu.u55.output import ofm_scale, prepare_output
from harness.npu.u55.weights import WeightReader

POOLING = {0: "MAX", 1: "AVERAGE", 2: "REDUCE_SUM"}


def prepare(operation: Operation, registers: Registers, config: NpuConfig) -> Job:
    """Raises Unsupported for what nobody has confirmed."""
    if operation.name == "CONV":
        return _prepare_convolution(registers, config, depthwise=False)
    if operation.name == "DEPTHWISE":
        return _prepare_convolution(registers, config, depthwise=True)
    if operation.name == "POOL":
        return _prepare_pool(operation, registers)
    if operation.name == "ELEMENTWISE":
        return prepare_elementwise(operation, registers)
    if operation.name == "DMA_START":
        return _prepare_dma(registers)
    raise registers.unsupported(operation.name, operation.parameter)


def _input(registers: Registers, window: Window, depth: int) -> Operand:
    dtype = element_type(registers, "IFM_PRECISION", 2)
    shape = (*source_size(registers, window), depth)
    bricks = is_bricks(registers, "IFM_PRECISION")
    ifm = feature_map(registers, "IFM", shape, dtype, bricks)
    return Operand("IFM", ifm, dtype, registers.signed16("IFM_ZERO_POINT"), shape)


def _prepare_convolution(registers: Registers, config: NpuConfig, depthwise: bool) -> Job:
    window, shape = kernel_window(registers), ofm_shape(registers)
    ifm_depth = registers["IFM_DEPTH_M1"] + 1
    if depthwise and ifm_depth != shape[2]:
        raise registers.unsupported("IFM_DEPTH_M1", ifm_depth - 1, "depth multiplier")
    ifm = _input(registers, window, ifm_depth)
    require_shorts(registers, "IFM", ifm.dtype, ifm.zero_point)
    reader = WeightReader(registers, config, window, ifm, shape[2], depthwise)
    output = prepare_output(registers, shape)
    if registers.bits("OFM_PRECISION", 8):
        raise registers.unsupported("OFM_PRECISION.scale_mode", "GLOBAL", "in a convolution")
    form = registers.bits("ACC_FORMAT", 0, 2)
    if form > 1:
        raise registers.unsupported("ACC_FORMAT", form)
    return Job(
        kind="kDepthwise" if depthwise else "kConvolution",
        offset=registers.offset,
        first=ifm,
        window=window,
        output=output,
        accumulators=Accumulators(40 if form else 32),
        parameters=reader,
        macs=shape[0] * shape[1] * shape[2] * window.elements * (1 if depthwise else ifm_depth),
    )


def _prepare_pool(operation: Operation, registers: Registers) -> Job:
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
    ifm = _input(registers, window, depth)
    if ifm.dtype == INT32 and mode != "REDUCE_SUM":
        raise registers.unsupported("IFM_PRECISION", ifm.dtype, f"in {mode} pooling")
    if not registers.bits("OFM_PRECISION", 8):
        raise registers.unsupported("OFM_PRECISION.scale_mode", "PER_CHANNEL", "in a pool")
    output, scale = prepare_output(registers, shape), ofm_scale(registers)
    if mode == "AVERAGE" and any(window.pads):
        if not scale.is_unit:
            raise registers.unsupported("OFM_SCALE", registers["OFM_SCALE"], "padded AVERAGE")
        scale = reciprocal(registers, window, 31)
    elements = 1 if mode == "MAX" else window.elements
    job = Job(
        kind="kPool",
        offset=registers.offset,
        pooling=enumerator(mode),
        first=ifm,
        window=window,
        output=output,
        accumulators=Accumulators(32),
        limit=ifm.limit * elements * (depth if mode == "REDUCE_SUM" else 1),
        scaling=scale,
    )
    return of_padding(job, window) if mode == "MAX" else job


def _prepare_dma(registers: Registers) -> Job:
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
    copy = Copy(
        length=length,
        rows=rows,
        planes=planes,
        source_region=source & 7,
        source=registers["DMA0_SRC"],
        source_row=length,
        source_plane=rows * length,
        internal=bool(target >> 8 & 1),
        target_region=target & 7,
        target=registers["DMA0_DST"],
        target_row=row_step,
        target_plane=row_step * rows + (registers["DMA0_SKIP1"] if mode == 2 else 0),
    )
    return Job("kCopy", registers.offset, copy=copy)
