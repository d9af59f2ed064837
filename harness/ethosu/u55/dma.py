"""DMA_START of U55 and U65: between regions, or into the look-up tables in shared RAM."""

from __future__ import annotations

from harness.ethosu.common import Context, Step
from harness.ethosu.stream import Registers

_MAX_BYTES = 1 << 30


def prepare_dma(registers: Registers) -> Step:
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
    if mode == 3 or rows < 1 or planes < 1 or length * rows * planes > _MAX_BYTES:
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

    return run
