"""Weight streams of the U55 in the wrong order, or with too little in them, are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.npu.errors import AccessError
from harness.npu.kernel_library import WeightDecoder, load
from harness.npu.u55 import LayoutU55, ordered_weights

LAYOUT = LayoutU55(8, (1, 1), 8, 8, 8, False, False, (1, 1), False)


def ordered(streams: list[np.ndarray], layout: LayoutU55, offset: int) -> np.ndarray:
    return ordered_weights(WeightDecoder(load()), streams, layout, offset)


def test_depth_first_order_and_padding() -> None:
    """32 input channels are coded although there are 8: the rest must be 0."""
    coded = np.zeros((4, 8, 8), np.int16)  # IFM microblock, o, i
    coded[0] = np.arange(64).reshape(8, 8)
    weights = ordered([coded.reshape(-1)], LAYOUT, 0)
    assert weights[:, 0, 0, :].tolist() == coded[0].tolist()
    coded[1, 0, 0] = 1
    with pytest.raises(AccessError, match="padding position is not 0"):
        ordered([coded.reshape(-1)], LAYOUT, 0)
    with pytest.raises(AccessError, match="too few weights"):
        ordered([np.zeros(10, np.int16)], LAYOUT, 0)


def coded(weights: np.ndarray, layout: LayoutU55) -> list[np.ndarray]:
    """One stream per core, written element by element: OFM blocks, IFM blocks, sub-kernels of at
    most 8 (dilated) rows and columns, then microblocks."""
    streams = []
    for core in range(layout.cores):
        own = weights[core :: layout.cores]
        block = (layout.ofm_block + layout.cores - 1 - core) // layout.cores
        streams.append(np.array(_elements(own, layout, block), np.int16))
    return streams


def _elements(own: np.ndarray, layout: LayoutU55, block: int) -> list[int]:
    depth, height, width, ifm_depth = own.shape
    step, unit = 16 if layout.part_kernel or layout.ifm_16bit else 32, layout.ofm_unit
    stream: list[int] = []

    def put(o: int, place: tuple[int, int] | None, i: int, last: int) -> None:
        inside = place is not None and o < last and i < ifm_depth
        stream.append(int(own[o, place[0], place[1], i]) if inside and place else 0)

    for ofm in range(0, depth, block):
        last = min(ofm + block, depth)
        for ifm in range(0, ifm_depth, step):
            for y in range(0, height, 8 // layout.dilation[0]):
                for x in range(0, width, 8 // layout.dilation[1]):
                    rows = range(y, min(height, y + 8 // layout.dilation[0]))
                    columns = range(x, min(width, x + 8 // layout.dilation[1]))
                    places: list[tuple[int, int] | None] = [(a, b) for a in rows for b in columns]
                    if layout.part_kernel:
                        places += [None] * (-len(places) % 4)
                        for i8 in range(ifm, min(ifm + step, ifm_depth), 8):
                            for o8 in range(ofm, last, unit):
                                for place in places:
                                    for o in range(o8, o8 + unit):
                                        for i in range(i8, i8 + 8):
                                            put(o, place, i, last)
                        continue
                    for o8 in range(ofm, last, unit):
                        for place in places:
                            for i8 in range(ifm, ifm + step, 8):
                                for o in range(o8, o8 + unit):
                                    for i in range(i8, i8 + 8):
                                        put(o, place, i, last)
    return stream


@pytest.mark.parametrize("part_kernel", [False, True])
@pytest.mark.parametrize(
    ("cores", "block", "kernel", "dilation"),
    [
        (1, 16, (3, 3), (1, 1)),
        (2, 16, (1, 1), (1, 1)),
        (2, 9, (1, 1), (1, 1)),  # the first core has one channel of the block more
        (1, 8, (9, 10), (1, 1)),  # sub-kernels of 8
        (1, 8, (5, 6), (2, 2)),  # a dilated kernel has sub-kernels of 4
        (1, 8, (5, 9), (2, 1)),
    ],
)
def test_every_weight_has_its_place(
    cores: int, block: int, kernel: tuple[int, int], dilation: tuple[int, int], part_kernel: bool
) -> None:
    layout = replace(
        LAYOUT,
        ofm_depth=21,
        kernel=kernel,
        ifm_depth=19,
        ofm_block=block,
        part_kernel=part_kernel,
        dilation=dilation,
        cores=cores,
    )
    count = 21 * kernel[0] * kernel[1] * 19
    weights = (np.arange(count) % 255 + 1).astype(np.int16).reshape(21, *kernel, 19)
    streams = coded(weights, layout)
    assert (ordered(streams, layout, 0) == weights).all()
    assert [layout.of_core(core).encoded for core in range(cores)] == [len(s) for s in streams]
    with pytest.raises(AccessError, match="too few weights"):
        ordered([*streams[:-1], streams[-1][:-1]], layout, 0)
