"""The order of the U85's weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.npu.errors import AccessError
from harness.npu.kernel_library import WeightDecoder, load
from harness.npu.u85_weights import LayoutU85, deinterleave

LAYOUT = LayoutU85(
    macs=256,
    ofm_depth=37,
    kernel=(3, 3),
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
    layout = replace(LAYOUT, kernel=kernel)
    count = 37 * kernel[0] * kernel[1] * 40
    weights = (np.arange(count) % 255 + 1).astype(np.int16).reshape(37, *kernel, 40)
    found = WeightDecoder(load()).order_u85([coded(weights, 16)], layout, 0)
    assert (found == weights).all()
    assert layout.encoded == len(coded(weights, 16))


@pytest.mark.parametrize("which", [0, -1])
def test_a_weight_beyond_the_depths_is_named(which: int) -> None:
    """The first place of padding is behind an input's last channel, the last one behind the
    output's."""
    stream = coded(np.ones((37, 3, 3, 40), np.int16), 16)
    stream[np.flatnonzero(stream == 0)[which]] = 1
    with pytest.raises(AccessError, match="padding position is not 0"):
        WeightDecoder(load()).order_u85([stream], LAYOUT, 0)


@pytest.mark.parametrize("part_kernel", [False, True])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize(("macs", "unit"), [(128, 8), (256, 16), (512, 16), (1024, 32), (2048, 64)])
@pytest.mark.parametrize("bits", [8, 16])
def test_an_operation_reads_as_many_weights_as_its_layout_says(
    macs: int, unit: int, bits: int, depthwise: bool, part_kernel: bool
) -> None:
    """With one fewer, there are too few. Kernels of several sub-kernels, with stride phases."""
    for kernel, stride in (((3, 3), (1, 1)), ((9, 10), (2, 1)), ((1, 17), (3, 2))):
        layout = replace(
            LAYOUT,
            macs=macs,
            ofm_unit=unit,
            ofm_block=2 * unit,
            ifm_bits=bits,
            ifm_depth=1 if depthwise else 40,
            depthwise=depthwise,
            part_kernel=part_kernel and not depthwise,
            kernel=kernel,
            stride=stride,
        )
        streams = [np.zeros(layout.encoded, np.int16) for _ in range(layout.streams)]
        WeightDecoder(load()).order_u85(streams, layout, 0)
        with pytest.raises(AccessError, match="too few weights"):
            WeightDecoder(load()).order_u85([*streams[1:], streams[0][1:]], layout, 0)


@pytest.mark.parametrize(("macs", "streams"), [(512, 2), (1024, 4)])
def test_the_fast_format_has_a_block_of_each_stream_in_turn(macs: int, streams: int) -> None:
    layout = replace(LAYOUT, macs=macs, ofm_unit=32, fast=True)
    size = 32 * layout.ifm_unit // streams
    blocks = np.arange(3 * streams * size, dtype=np.int32).reshape(3, streams, size)
    values = np.append(blocks.ravel(), [7] * 9)  # what is no whole turn is padding
    found = deinterleave(values, layout)
    assert [one.tolist() for one in found] == [
        blocks[:, n].ravel().tolist() for n in range(streams)
    ]
