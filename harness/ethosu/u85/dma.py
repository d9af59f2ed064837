"""DMA_START of the U85: strided copies, gather and scatter by index, and the LUT RAM.

Register meanings: ``GenerateDMA`` in regor's ``ethos_u85_register_cs_generator.cpp``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.common import Context, Step
from harness.ethosu.errors import AccessError
from harness.ethosu.stream import Registers

_MAX_BYTES = 1 << 30
_MAX_ROWS = 1 << 20


def prepare_dma(registers: Registers) -> Step:
    source, target = registers["DMA0_SRC_REGION"], registers["DMA0_DST_REGION"]
    if source >> 8 & 1:
        raise registers.unsupported("DMA0_SRC_REGION.region_mode", "INTERNAL")
    mode = source >> 9 & 3
    gather, scatter = bool(source >> 11 & 1), bool(target >> 11 & 1)
    length = registers["DMA0_LEN"]
    rows = registers["DMA0_SIZE0"] if mode or gather or scatter else 1
    planes = registers["DMA0_SIZE1"] if mode == 2 else 1
    bad = mode == 3 or min(length, rows, planes) < 1 or (gather and scatter)
    if bad or length * rows * planes > _MAX_BYTES or rows * planes > _MAX_ROWS:
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

    return run


def _indices(context: Context, registers: Registers, count: int) -> NDArray[np.int32]:
    region, at = registers["DMA0_IDX_REGION"] & 7, registers["DMA0_IDX"]
    data = context.memory.read(region, at, 4 * count, "DMA index", registers.offset)
    indices = np.frombuffer(data.tobytes(), np.int32)
    largest = registers["DMA0_IDX_MAX"] & 0x7FFFFFFF
    if indices.min() < 0 or indices.max() > largest:
        raise AccessError(f"a DMA index is outside 0..{largest}", registers.offset)
    return indices
