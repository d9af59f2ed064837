"""Streams that a stranger might send: their registers describe far more than there is.

``python -m tests.npu.planted PRODUCT`` runs all of a product in this process and says, as one
line of JSON for each, how it ended and the most memory that there was until then, in KiB.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from harness.npu import kernel_library
from harness.npu.errors import EthosUError
from harness.npu.model import Network
from tests.npu.assembling import U55_128, U85_256, Item, blob, cop1, pool, tensors, words

U65_256 = 1 << 28 | 48 << 8 | 8
CONFIGS = {"u55": U55_128, "u65": U65_256, "u85": U85_256}
SPACE = 3 << 30  # bytes of addresses beyond those of the start: a larger array is an error at once
DMA: list[Item] = [
    *(("DMA0_SRC_REGION", 1), ("DMA0_DST_REGION", 1), ("DMA0_SRC", 0), ("DMA0_DST", 1024)),
    ("DMA0_LEN", 256),
]
LARGE = {"OFM_HEIGHT_M1": 65535, "OFM_WIDTH_M1": 65535, "OFM_DEPTH_M1": 65535}
ONE = {"OFM_HEIGHT_M1": 0, "OFM_WIDTH_M1": 0}


@dataclass(frozen=True)
class Plant:
    """``says``: what its error names; None where it is done."""

    name: str
    says: str | None
    data: bytes


def plants(product: str) -> Iterator[Plant]:
    def stream(*items: Item, again: int = 1) -> bytes:
        """With the last of them that many times."""
        last = words(product, items[-1]) * again
        stop = words(product, ("STOP", 0xFFFF))
        return cop1(CONFIGS[product], [*words(product, *items[:-1]), *last, *stop])

    def of(operation: str, parameter: int = 0, **changes: int) -> list[Item]:
        form = {"OFM_PRECISION": 0x101 if product == "u85" else 0x8101}
        return [*pool(**{**form, **changes})[:-2], (operation, parameter)]

    weights = {"WEIGHT_REGION": 0, "WEIGHT_BASE": 0, "WEIGHT_LENGTH": 1 << 24}
    scales = {"SCALE_REGION": 0, "SCALE_BASE": 0, "SCALE_LENGTH": 160, "OFM_BLK_DEPTH_M1": 15}
    wide = {"OFM_HEIGHT_M1": 2047, "OFM_WIDTH_M1": 2047, "OFM_DEPTH_M1": 7, "IFM_DEPTH_M1": 7}
    flat = {"OFM_HEIGHT_M1": 4095, "OFM_WIDTH_M1": 4095, "OFM_DEPTH_M1": 0, "IFM_DEPTH_M1": 0}
    channels = {"OFM_PRECISION": 1, "ACC_FORMAT": 1 << 8, "WEIGHT_FORMAT": 0}
    if product != "u85":
        channels = {"OFM_PRECISION": 0x8001}
    found = [
        ("maps", "the OFM asks for 281474976710656 elements", of("POOL", 1, **LARGE)),
        (
            "kernel",
            "the kernel asks for 4294967296 elements",
            of("CONV", **ONE, KERNEL_HEIGHT_M1=65535, KERNEL_WIDTH_M1=65535),
        ),
        (
            "padding",
            "the IFM with its padding",
            of(
                "POOL",
                1,
                **tiles(65535, 16),
                IFM_PAD_TOP=8999,
                KERNEL_HEIGHT_M1=9000,
                OFM_WIDTH_M1=4095,
            ),
        ),
        (
            "room",
            "weights",
            of(
                "CONV",
                **{**tiles(65535, 16), **ONE, **weights, **scales, **channels},
                KERNEL_HEIGHT_M1=63,
                KERNEL_WIDTH_M1=63,
                OFM_DEPTH_M1=4095,
            ),
        ),
        (
            "vectors",
            "the IFM of DEPTHWISE in vectors",
            of("DEPTHWISE", **{**tiles(4095, 1), **flat, **weights, **scales, **channels}),
        ),
        (
            "divisors",
            "divisors of averages",
            of(
                "POOL",
                1,
                **tiles(65535, 1),
                **flat,
                IFM_PAD_TOP=1,
                KERNEL_HEIGHT_M1=1,
                KERNEL_WIDTH_M1=1,
            ),
        ),
        (
            "dma",
            "DMA asks for 2147483648 bytes",
            [*DMA[:-1], ("DMA0_LEN", 1 << 31), ("DMA_START", 0)],
        ),
    ]
    for name, says, items in found:
        yield Plant(name, says, blob(stream(*items)))
    many = stream(*of("POOL", 1), again=1_000_000)
    yield Plant("operations", "asks for 655361 operations", blob(many))
    differing = [
        item for number in range(40_000) for item in (("OFM_ZERO_POINT", number), ("POOL", 1))
    ]
    kinds = stream(*of("POOL", 1), *differing)
    yield Plant("kinds", "asks for 24577 operations that are not alike", blob(kinds))
    square = {"OFM_HEIGHT_M1": 999, "OFM_WIDTH_M1": 999, "IFM_PAD_TOP": 1, "KERNEL_HEIGHT_M1": 1}
    averages = of("POOL", 1, **{**flat, **tiles(65535, 1), **square}) + differing[:40]
    said = "bytes for its weights and scales"
    yield Plant("averages", said, blob(stream(*averages)))
    small = stream(*of("POOL", 1, **wide, **tiles(2047, 8)), again=1000)
    yield Plant("work", "units of work", blob(small, scratch=1 << 26))
    convolution = {**ONE, **weights, **scales, **channels}
    held = stream(*of("CONV", **convolution), again=100)
    yield Plant("kept", "bytes for its weights and scales", blob(held, weights=bytes(1 << 16)))
    regions = stream(*of("POOL", 1))
    apart = tensors(((1, 1, 1, 1, 1, 1 << 27), 1, 0, 3))
    yield Plant(
        "regions",
        "bytes for its regions, the limit of the model is",
        blob(regions, scratch=1 << 28, inputs=apart),
    )
    sides = {"OFM_HEIGHT_M1": 0, "OFM_WIDTH_M1": 65535, "OFM_DEPTH_M1": 511}
    absolute = {"IFM_SCALE": 1, "IFM_BROADCAST": 0} if product == "u85" else {}
    row = of("ELEMENTWISE", 6, **{**wide, **tiles(65535, 512), **sides, **absolute})
    yield Plant("row", "a row of ELEMENTWISE asks for 33554432 elements", blob(stream(*row)))
    if product == "u85":
        yield from _of_the_u85(stream, of)
    yield _largest_copy(stream, of)


def tiles(side: int, depth: int) -> dict[str, int]:
    """One for each map, of which ``side`` is the size less 1."""
    sides = {"HEIGHT0_M1": side, "HEIGHT1_M1": side, "WIDTH0_M1": side}
    steps = {"STRIDE_Y": (side + 1) * depth, "STRIDE_X": depth}
    return {
        f"{map}_{name}": value
        for map in ("IFM", "OFM")
        for name, value in {**sides, **steps}.items()
    }


def _of_the_u85(stream, of) -> Iterator[Plant]:  # type: ignore[no-untyped-def]
    resize = {"RESIZE_X_SCALE_N_M1": 0, "RESIZE_Y_SCALE_N_M1": 0, "RESIZE_X": 0, "RESIZE_Y": 0}
    resize |= {"RESIZE_X_OFFSET": 0, "RESIZE_Y_OFFSET": 0, "OFM_SCALE": 1 | 16 << 32}
    yield Plant("resize", "the OFM asks for", blob(stream(*of("RESIZE", 2, **LARGE, **resize))))
    between = {**ONE, "OFM_HEIGHT_M1": 8191, "KERNEL_WIDTH_M1": 65535, **resize, **tiles(65535, 16)}
    yield Plant(
        "between", "elements between its two directions", blob(stream(*of("RESIZE", 0, **between)))
    )
    rows: list[Item] = [
        *(("DMA0_SIZE0", 65535), ("DMA0_SRC_STRIDE0", 0), ("DMA0_DST_STRIDE0", 0)),
        *(("DMA0_SRC_REGION", 1 | 1 << 9), ("DMA0_LEN", 1 << 13), ("DMA_START", 0)),
    ]
    yield Plant("rows", "DMA asks for", blob(stream(*DMA[1:-1], *rows)))
    loop = cop1(U85_256, [*words("u85", *of("POOL", 1)), 0x0000_4100, 0])
    yield Plant("loop", "units of work", blob(loop))


def _largest_copy(stream, of) -> Plant:  # type: ignore[no-untyped-def]
    """What is still done: 2**25 elements, in the largest scratch."""
    shape = {"OFM_HEIGHT_M1": 4095, "OFM_WIDTH_M1": 4095, "OFM_DEPTH_M1": 1, "IFM_DEPTH_M1": 1}
    data = stream(*of("POOL", 1, **{**shape, **tiles(4095, 2), "OFM_BASE0": 1 << 26}))
    output = tensors(((1, 1, 1, 4, 4, 16), 1, 1 << 26, 1))
    return Plant("largest", None, blob(data, scratch=1 << 28, outputs=output))


def main(product: str) -> None:
    start = _most()
    with open("/proc/self/statm") as file:
        there = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (there + SPACE, there + SPACE))
    kernel_library.load()
    for plant in plants(product):
        try:
            Network(plant.data).run([bytes(256)])
            said = None
        except EthosUError as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps([plant.name, plant.says, said, _most() - start]), flush=True)


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(sys.argv[1])
