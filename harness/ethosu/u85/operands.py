"""What U85 convolutions and pools work with: accumulators, weights and scales.

Register meanings from regor's ``ethos_u85_register_cs_generator.cpp`` (Vela 5.1.0).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate as acc
from harness.ethosu.common import Array, Context, check_accumulators
from harness.ethosu.output_stage import UNIT, Scale
from harness.ethosu.stream import Registers
from harness.ethosu.u55.engine import little_endian, scale_records
from harness.ethosu.u85.stages import (
    Source,
    ofm_rounding,
    ofm_scale,
    prepare_source,
    require_rounding,
)
from harness.ethosu.u85.weights import (
    UBLOCK_DEPTH,
    WeightLayoutU85,
    decode_fast,
    deinterleave,
    reorder_u85,
)
from harness.formats.cop import NpuConfig

RESET, KEEP, IFM2 = range(3)
Integers = NDArray[np.int64]


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
        if self._input == RESET:
            return None
        kept = context.accumulators
        if kept is None or kept.shape != self._shape:
            raise self._registers.unsupported("ACC_FORMAT.acc_input", "KEEP", "nothing was kept")
        return kept.astype(np.int64)


class KernelReader:
    """Fetches, decodes and reorders weights; decoded once per content."""

    def __init__(
        self,
        registers: Registers,
        config: NpuConfig,
        window: acc.Window,
        ifm: Source,
        depth: int,
        depthwise: bool,
    ) -> None:
        microblock = registers.bits("ACC_FORMAT", 8, 3)
        ublock = UBLOCK_DEPTH.get((config.macs, microblock))
        if ublock is None:
            raise registers.unsupported("ACC_FORMAT.microblock", microblock)
        if ifm.source is None:
            raise registers.unsupported("IFM_PRECISION.activation_storage", "not TILE2X2")
        form = registers["WEIGHT_FORMAT"]
        self._registers = registers
        self._layout = WeightLayoutU85(
            macs=config.macs,
            ofm_depth=depth,
            kernel=window.kernel,
            ifm_depth=ifm.source.shape[2],
            ofm_block=registers["OFM_BLK_DEPTH_M1"] + 1,
            ofm_ublock=ublock,
            ifm_bits=8 * ifm.dtype.itemsize,
            part_kernel=bool(registers.bits("KERNEL_STRIDE", 2)) and not depthwise,
            depthwise=depthwise,
            sparse=bool(form >> 4 & 1),
            fast=bool(form & 1),
            dilation=window.dilation,
            stride=window.stride,
        )
        count = 1 if self._layout.fast else self._layout.streams
        names = ("", "1", "2", "3")[:count]
        self._spans = [
            (registers[f"WEIGHT{n}_LENGTH"] & 0xFFFFFFFF, f"WEIGHT{n}_BASE") for n in names
        ]
        self._region = registers["WEIGHT_REGION"] & 7

    def read(self, context: Context) -> acc.Kernel:
        encoded = tuple(self._fetch(context, *span) for span in self._spans)
        key = (self._layout, encoded)
        found = context.decoded.get(key)
        if found is None:
            found = context.decoded[key] = self._kernel(context, encoded)
        return found  # type: ignore[return-value]

    def _fetch(self, context: Context, length: int, base: str) -> bytes:
        if not length:
            return b""
        at, offset = self._registers[base], self._registers.offset
        return context.memory.read(self._region, at, length, "WEIGHT", offset).tobytes()

    def _kernel(self, context: Context, encoded: tuple[bytes, ...]) -> acc.Kernel:
        offset = self._registers.offset
        if self._layout.fast:
            streams = deinterleave(decode_fast(encoded[0], offset), self._layout)
        else:
            streams = [context.codec.decode(part, offset) for part in encoded]
        weights = reorder_u85(streams, self._layout, offset)
        build = acc.depthwise_kernel if self._layout.depthwise else acc.convolution_kernel
        return build(weights)


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
