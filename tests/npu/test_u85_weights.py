"""The order of the U85's weights."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.kernel_library import WeightDecoder, load
from harness.npu.u85_weights import LayoutU85


def coded(weights: np.ndarray, block: int) -> np.ndarray:
    """For 256 MACs and depth first, element by element: sub-kernels column by column of 8, in
    each the rows in serpentine; every second OFM block has its IFM blocks in reverse."""
    depth, height, width, ifm_depth = weights.shape
    stream: list[int] = []

    def put(o: int, y: int, x: int, i: int) -> None:
        stream.append(int(weights[o, y, x, i]) if o < depth and i < ifm_depth else 0)

    for turn, ofm in enumerate(range(0, depth, block)):
        ifms = list(range(0, ifm_depth, 32))
        for ifm in reversed(ifms) if turn % 2 else ifms:
            for x8 in range(0, width, 8):
                for y8 in range(0, height, 8):
                    places = []
                    for row in range(y8, min(height, y8 + 8)):
                        columns = list(range(x8, min(width, x8 + 8)))
                        places += [(row, x) for x in (columns[::-1] if (row - y8) % 2 else columns)]
                    for o16 in range(ofm, min(ofm + block, depth), 16):
                        for y, x in places:
                            for i8 in range(ifm, ifm + 32, 8):
                                for o4 in range(o16, o16 + 16, 4):
                                    for o in range(o4, o4 + 4):
                                        for i in range(i8, i8 + 8):
                                            put(o, y, x, i)
    return np.array(stream, np.int16)


@pytest.mark.parametrize("kernel", [(3, 3), (9, 3), (3, 9), (9, 10)])
def test_every_weight_has_its_place(kernel: tuple[int, int]) -> None:
    layout = LayoutU85(
        macs=256,
        ofm_depth=37,
        kernel=kernel,
        ifm_depth=40,
        ofm_block=16,
        ofm_unit=16,
        ifm_bits=8,
        part_kernel=False,
        depthwise=False,
        sparse=False,
        fast=False,
        dilation=(1, 1),
        stride=(1, 1),
    )
    count = 37 * kernel[0] * kernel[1] * 40
    weights = (np.arange(count) % 255 + 1).astype(np.int16).reshape(37, *kernel, 40)
    found = WeightDecoder(load()).order_u85([coded(weights, 16)], layout, True, 0)
    assert (found == weights).all()
