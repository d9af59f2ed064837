"""Where the elements of a feature map are: tiles, NHWC and NHCWB16.

Addressing as regor generates it (``GetTiles`` and ``AddressForCoordinate`` of the register
command stream generators, Vela 5.1.0): a tile's base is the address of its first element.
``kernel/feature_map.cpp`` reads and writes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.npu.errors import check_limit
from harness.npu.stream import Registers

ELEMENTS = 1 << 25  # the most of one feature map with its padding
CHAINING_BUFFER = "chaining buffer"
# Regions 0 to 7 belong to the command stream, 8 and up are chaining buffers.
FIRST_CHAINING_REGION = 8
_INVALID_REGION = 16  # no region


@dataclass(frozen=True)
class Tile:
    """A rectangle of the map that has one base address."""

    y: int
    x: int
    height: int
    width: int
    base: int


@dataclass(frozen=True)
class FeatureMap:
    """The layout of a feature map; ``what`` names it in errors and statistics.

    ``shape`` and ``stride`` (bytes): y, x, c."""

    what: str
    number: int
    tile: tuple[Tile, ...]
    shape: tuple[int, int, int]
    stride: tuple[int, int, int]
    bricks: bool
    dtype: np.dtype[Any]

    @property
    def region(self) -> int:
        """The region for the kernel; an invalid one if the stream names a chaining buffer's."""
        exists = self.number < FIRST_CHAINING_REGION or self.is_chained
        return self.number if exists else _INVALID_REGION

    @property
    def is_chained(self) -> bool:
        return self.what == CHAINING_BUFFER

    @property
    def tiles(self) -> int:
        return len(self.tile)

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.bytes


def chaining_buffer(number: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> FeatureMap:
    """Return a chaining buffer of the U85, as a region of its own: rows without gaps."""
    size = dtype.itemsize
    stride = (shape[1] * shape[2] * size, shape[2] * size, size)
    tile = Tile(0, 0, shape[0], shape[1], 0)
    return FeatureMap(
        CHAINING_BUFFER, FIRST_CHAINING_REGION + number, (tile,), shape, stride, False, dtype
    )


def split_tiles(height: int, width: int, registers: Registers, prefix: str) -> tuple[Tile, ...]:
    """WIDTH0 and HEIGHT0 (HEIGHT1 on the right side) divide a map into at most four tiles."""
    width0 = registers[f"{prefix}_WIDTH0_M1"] + 1
    height0 = registers[f"{prefix}_HEIGHT0_M1"] + 1
    height1 = registers[f"{prefix}_HEIGHT1_M1"] + 1 if width > width0 else height0
    tiles = []
    for right, (x, columns, limit) in enumerate(
        ((0, min(width, width0), height0), (width0, width - width0, height1))
    ):
        for below, (y, rows) in enumerate(((0, min(height, limit)), (limit, height - limit))):
            if columns > 0 and rows > 0:
                base = registers[f"{prefix}_BASE{right + 2 * below}"]
                tiles.append(Tile(y, x, rows, columns, base))
    return tuple(tiles)


def feature_map(
    registers: Registers,
    prefix: str,
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    bricks: bool,
) -> FeatureMap:
    if min(shape) < 1:
        raise registers.unsupported(f"{prefix} shape", shape)
    check_limit(f"the {prefix}", math.prod(shape), ELEMENTS, "elements", registers.offset)
    return FeatureMap(
        what=prefix,
        number=registers[f"{prefix}_REGION"],
        tile=split_tiles(shape[0], shape[1], registers, prefix),
        shape=shape,
        stride=(
            registers[f"{prefix}_STRIDE_Y"],
            registers[f"{prefix}_STRIDE_X"],
            registers[f"{prefix}_STRIDE_C"] if bricks else dtype.itemsize,
        ),
        bricks=bricks,
        dtype=dtype,
    )
