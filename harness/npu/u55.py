"""Operations of the U55 and U65.

Register meanings from regor's ``ethos_u55_register_cs_generator.cpp`` (Vela 5.1.0); arithmetic
as the TOSA reference model has it. "(inferred)" marks what only comparison confirms.

Elementwise operands are scaled as ``GenerateScalingForElementwise`` emits it: mode OPA_32 or
OPB_32 scales the named operand and shifts the other left by 19 bits (8-bit inputs) or 14 (16-bit)
(inferred).

Weights are read as (ofm, y, x, ifm). Their order is the one of ``EthosUWeightOrdering`` in regor's
``ethos_u55_weight_encoder.cpp`` (Vela 5.1.0); ``kernel/reorder_u55.cpp`` follows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.formats.ethosu import NpuConfig
from harness.npu.feature_map import feature_map
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
    weight_span,
)
from harness.npu.job import (
    INT8,
    INT16,
    INT32,
    UNARY,
    Accumulators,
    Copy,
    Job,
    LookUp,
    Operand,
    Output,
    ParameterReader,
    Parameters,
    Window,
    largest_result,
)
from harness.npu.kernel_library import WeightDecoder, WeightLayout, Weights, enumerator
from harness.npu.scale import RECORD_BYTES, UNIT, Scale, little_endian, scale_records, single_scale
from harness.npu.stream import Operation, Registers, register_set

_ROUNDING = {0: "DBL", 1: "TRUNCATE", 2: "NATURAL"}
_LUT_SLOT, _LUT_BYTES = 256, 2048  # at the end of the internal memory


def prepare_output(registers: Registers, shape: tuple[int, int, int]) -> Output:
    dtype = element_type(registers, "OFM_PRECISION", 1)
    if dtype not in (INT8, INT16, INT32):
        raise registers.unsupported("OFM_PRECISION.activation_precision", dtype)
    rounding = _ROUNDING.get(registers.bits("OFM_PRECISION", 14, 2))
    if rounding is None or rounding == "TRUNCATE":
        raise registers.unsupported("OFM_PRECISION.round_mode", rounding)
    function, clip = registers.bits("ACTIVATION", 0, 5), registers.bits("ACTIVATION", 12, 3)
    if 0 < function < 16 or function > 23:
        raise registers.unsupported("ACTIVATION.activation_function", function)
    if clip not in (0, 3):
        raise registers.unsupported("ACTIVATION.activation_clip_range", clip)
    clamp = (registers.signed16("ACTIVATION_MIN"), registers.signed16("ACTIVATION_MAX"))
    if clamp[0] > clamp[1]:
        raise registers.unsupported("ACTIVATION_MIN", clamp[0], "above ACTIVATION_MAX")
    bricks = is_bricks(registers, "OFM_PRECISION")
    index_type, look_up = dtype, None
    if function:
        index_type = INT16 if dtype == INT16 else INT8
        size = 2048 if index_type == INT16 else 256 * dtype.itemsize
        number = function - 16
        look_up = LookUp(number, number * _LUT_SLOT - _LUT_BYTES, size)
    return Output(
        map=feature_map(registers, "OFM", shape, dtype, bricks),
        shape=shape,
        index_type=index_type,
        zero_point=registers.signed16("OFM_ZERO_POINT"),
        clamp=_clamp(dtype if clip == 0 else INT8, clamp),
        look_up=look_up,
        rounding="" if rounding == "NATURAL" else rounding,
    )


def _clamp(dtype: np.dtype[Any], clamp: tuple[int, int]) -> tuple[int, int] | None:
    """32-bit results are stored as they are."""
    if dtype == INT32:
        return None
    limits = np.iinfo(dtype)
    return max(clamp[0], int(limits.min)), min(clamp[1], int(limits.max))


def ofm_scale(registers: Registers) -> Scale:
    value = registers["OFM_SCALE"]
    return single_scale(value & 0xFFFFFFFF, value >> 32 & 63)


_SCALED = frozenset({"MUL", "ADD", "SUB", "ABS"})  # the others take no OFM_SCALE
_SCALE_16, _SCALE_OPA, _SCALE_OPB = range(3)
_NATURAL = 2


def prepare_elementwise(operation: Operation, registers: Registers) -> Job:
    code = operation.parameter & 63
    mode = register_set("u55").elementwise.get(code, "LRELU")
    if mode == "LRELU":
        raise registers.unsupported("ELEMENTWISE.elementwise_mode", code)
    shape = ofm_shape(registers)
    if registers.get("IFM_UPSCALE"):
        raise registers.unsupported("IFM_UPSCALE", registers["IFM_UPSCALE"], "elementwise")
    scales = _operand_scales(mode, registers)
    second, swapped = None, mode not in UNARY and bool(registers.bits("IFM2_BROADCAST", 6))
    first = _operand(registers, "IFM", shape, shape, scales[swapped])
    if mode not in UNARY:
        second = _second(registers, shape, scales[not swapped])
        if swapped:
            first, second = second, first
    output = prepare_output(registers, shape)
    global_scale = bool(registers.bits("OFM_PRECISION", 8))
    if global_scale != (mode in _SCALED):
        raise registers.unsupported("OFM_PRECISION.scale_mode", int(global_scale), f"in {mode}")
    return Job(
        kind="kElementwise",
        offset=registers.offset,
        combine=enumerator(mode),
        first=first,
        second=second,
        output=output,
        limit=largest_result(mode, first, second, 32),
        scaling=ofm_scale(registers) if mode in _SCALED else UNIT,
    )


def _operand_scales(mode: str, registers: Registers) -> tuple[Scale, Scale]:
    """Return the scales of the left and the right operand. SHR rounds as the OFM."""
    if mode == "SHR":
        rounding = registers.bits("OFM_PRECISION", 14, 2)
        if rounding != _NATURAL:
            raise registers.unsupported("OFM_PRECISION.round_mode", rounding, "in SHR")
        return UNIT, UNIT
    if mode not in ("ADD", "SUB"):
        return UNIT, UNIT
    scaling, opa = registers.bits("IFM_PRECISION", 8, 2), registers["OPA_SCALE"]
    dtype = element_type(registers, "IFM_PRECISION", 2)
    factor, opb = opa & 0xFFFFFFFF, registers["OPB_SCALE"] & 0xFFFF
    if scaling == _SCALE_16:
        return single_scale(factor, 0), single_scale(opb, 0)
    if scaling not in (_SCALE_OPA, _SCALE_OPB):
        raise registers.unsupported("IFM_PRECISION.scale_mode", scaling)
    scaled = single_scale(factor, opa >> 32 & 63)
    rounding = registers.bits("IFM_PRECISION", 14, 2)
    if rounding != _NATURAL and not scaled.is_unit:
        raise registers.unsupported("IFM_PRECISION.round_mode", rounding)
    if dtype == INT32:
        raise registers.unsupported("IFM_PRECISION", dtype, "with OPA_32 or OPB_32")
    shifted = single_scale(1 << (19 if dtype == INT8 else 14), 0)
    return (scaled, shifted) if scaling == _SCALE_OPA else (shifted, scaled)


def _operand(
    registers: Registers,
    prefix: str,
    shape: tuple[int, int, int],
    whole: tuple[int, int, int],
    scale: Scale = UNIT,
) -> Operand:
    dtype: np.dtype[Any] = element_type(registers, f"{prefix}_PRECISION", 2)
    if dtype.itemsize > 4:
        raise registers.unsupported(f"{prefix}_PRECISION", dtype)
    bricks = is_bricks(registers, f"{prefix}_PRECISION")
    return Operand(
        what=prefix,
        map=feature_map(registers, prefix, shape, dtype, bricks),
        dtype=dtype,
        zero_point=registers.signed16(f"{prefix}_ZERO_POINT"),
        shape=whole,
        scaling=scale,
    )


def _second(registers: Registers, shape: tuple[int, int, int], scale: Scale) -> Operand:
    broadcast = registers["IFM2_BROADCAST"]
    if broadcast >> 7 & 1:
        zero_point, scalar = map(registers.signed16, ("IFM2_ZERO_POINT", "IFM2_SCALAR"))
        return Operand("IFM2", None, INT32, zero_point, shape, scalar=scalar, scaling=scale)
    return _operand(registers, "IFM2", broadcasting(shape, broadcast), shape, scale)


def prepare(operation: Operation, registers: Registers, config: NpuConfig) -> Job:
    """Return the job of an operation. Raises Unsupported for behaviour that is not confirmed."""
    if operation.name in ("CONV", "DEPTHWISE"):
        return _prepare_convolution(registers, config, operation.name == "DEPTHWISE")
    if operation.name == "POOL":
        return _prepare_pool(operation, registers)
    if operation.name == "ELEMENTWISE":
        return prepare_elementwise(operation, registers)
    if operation.name == "DMA_START":
        return _prepare_dma(registers)
    raise registers.unsupported(operation.name, operation.parameter)


def _input(registers: Registers, window: Window, depth: int) -> Operand:
    shape = (*source_size(registers, window), depth)
    return _operand(registers, "IFM", shape, shape)


def _prepare_convolution(registers: Registers, config: NpuConfig, depthwise: bool) -> Job:
    window, shape = kernel_window(registers), ofm_shape(registers)
    ifm_depth = registers["IFM_DEPTH_M1"] + 1
    if depthwise and ifm_depth != shape[2]:
        raise registers.unsupported("IFM_DEPTH_M1", ifm_depth - 1, "depth multiplier")
    ifm = _input(registers, window, ifm_depth)
    require_shorts(registers, "IFM", ifm.dtype, ifm.zero_point)
    reader = weight_reader(registers, config, window, ifm, shape[2], depthwise)
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
        output=prepare_output(registers, shape),
        accumulators=Accumulators(40 if form else 32),
        parameters=reader,
        macs=math.prod(shape) * window.elements * (1 if depthwise else ifm.shape[2]),
    )


def _prepare_pool(operation: Operation, registers: Registers) -> Job:
    mode = register_set("u55").pooling.get(operation.parameter & 7)
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
    return pool(mode, registers.offset, window, ifm, output, Accumulators(32), scale)


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
    """Order a stream per core as (ofm, y, x, ifm): core = c % cores. Raises AccessError."""
    whole = np.zeros((layout.ofm_depth, *layout.kernel, layout.ifm_depth), np.int16)
    for core, stream in enumerate(streams):
        own = layout.of_core(core)
        if own.ofm_depth:
            decoder.order_u55(stream, own, whole, core, offset)
    return whole
