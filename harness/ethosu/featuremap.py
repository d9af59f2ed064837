"""Where the elements of a feature map lie: tiles, NHWC and NHCWB16.

Addressing as regor generates it (``GetTiles`` and ``AddressForCoordinate`` of the register
command stream generators, Vela 5.1.0): a tile's base is the address of its first element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.errors import AccessError, WorkLimit
from harness.ethosu.memory import WEIGHTS, Memory
from harness.ethosu.stream import Registers
from harness.ethosu.work import ELEMENTS

Array = NDArray[Any]
_BRICK = 16
CHAINED = "chaining buffer"
CHAINS = 8  # where regions begin that stand for chaining buffers; those of a stream end before
_ONES = {1: 1, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}  # one mark per byte


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
    """Everything that says where (y, x, c) is; ``what`` names it in errors and statistics."""

    what: str
    region: int
    tiles: tuple[Tile, ...]
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    bricks: bool
    dtype: np.dtype[Any]
    offset: int

    def read(self, memory: Memory) -> Array:
        """A copy-free view where the layout allows one, else a new array."""
        parts = [self._map(memory, tile, False) for tile in self.tiles]
        memory.count(self.region, self.what, self.size)
        if len(parts) == 1:
            return parts[0]
        result = np.empty(self.shape, self.dtype)
        for tile, part in zip(self.tiles, parts, strict=True):
            result[tile.y : tile.y + tile.height, tile.x : tile.x + tile.width] = part
        return result

    @property
    def size(self) -> int:
        height, width, depth = self.shape
        return height * width * depth * self.dtype.itemsize

    def write(self, memory: Memory, values: Array) -> None:
        if self.region == WEIGHTS:
            raise AccessError(f"{self.what} is in the read-only weights", self.offset)
        memory.count(self.region, self.what, self.size)
        for tile in self.tiles:
            part = values[tile.y : tile.y + tile.height, tile.x : tile.x + tile.width]
            self._store(memory, tile, part)

    def _map(self, memory: Memory, tile: Tile, marks: bool) -> Array:
        """One tile as (height, width, depth)."""
        if not self.bricks:
            return self._view(memory, tile, marks, self.shape[2:], (self.dtype.itemsize,))
        depth = self.shape[2]
        count = -(-depth // _BRICK)
        wall = self._wall(memory, tile, marks, count)
        whole = wall.transpose(0, 2, 1, 3).reshape(tile.height, tile.width, count * _BRICK)
        return whole[:, :, :depth]

    def _store(self, memory: Memory, tile: Tile, part: Array) -> None:
        for marks in (False, True) if memory.strict else (False,):
            value = _ONES[self.dtype.itemsize] if marks else part
            if not self.bricks:
                view = self._view(memory, tile, marks, self.shape[2:], (self.dtype.itemsize,))
                view[...] = value
            elif marks:
                wall = self._wall(memory, tile, True, -(-self.shape[2] // _BRICK))
                wall[...] = value
            else:
                self._store_bricks(memory, tile, part)

    def _store_bricks(self, memory: Memory, tile: Tile, part: Array) -> None:
        depth = self.shape[2]
        full, rest = divmod(depth, _BRICK)
        wall = self._wall(memory, tile, False, full + bool(rest))
        split = part[:, :, : full * _BRICK].reshape(tile.height, tile.width, full, _BRICK)
        wall[:, :full] = split.transpose(0, 2, 1, 3)
        if rest:
            wall[:, full, :, :rest] = part[:, :, full * _BRICK :]

    def _wall(self, memory: Memory, tile: Tile, marks: bool, count: int) -> Array:
        """The tile as stored: (height, brick, width, 16)."""
        size = self.dtype.itemsize
        shape = (tile.height, count, tile.width, _BRICK)
        strides = (self.strides[0], self.strides[2], _BRICK * size, size)
        return self._strided(memory, tile.base, marks, shape, strides)

    def _view(
        self,
        memory: Memory,
        tile: Tile,
        marks: bool,
        inner_shape: tuple[int, ...],
        inner_strides: tuple[int, ...],
    ) -> Array:
        shape = (tile.height, tile.width, *inner_shape)
        strides = (self.strides[0], self.strides[1], *inner_strides)
        return self._strided(memory, tile.base, marks, shape, strides)

    def _strided(
        self,
        memory: Memory,
        base: int,
        marks: bool,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> Array:
        """The one place where addresses become memory: bounds first, then the view."""
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low = base + sum(min(r, 0) for r in reach)
        high = base + sum(max(r, 0) for r in reach) + self.dtype.itemsize
        memory.region(self.region, low, high, self.what, self.offset)
        store = memory.written if marks else memory.regions
        return np.ndarray(shape, self.dtype, store[self.region].data, base, strides)


def chaining_buffer(
    number: int, shape: tuple[int, int, int], dtype: np.dtype[Any], offset: int
) -> FeatureMap:
    """One of the U85's, as a region of its own: rows without gaps."""
    size = dtype.itemsize
    strides = (shape[1] * shape[2] * size, shape[2] * size, size)
    tile = Tile(0, 0, shape[0], shape[1], 0)
    return FeatureMap(CHAINED, CHAINS + number, (tile,), shape, strides, False, dtype, offset)


def split_tiles(height: int, width: int, registers: Registers, prefix: str) -> tuple[Tile, ...]:
    """x < WIDTH0 and y < HEIGHT0 (HEIGHT1 on the right) choose between the four bases."""
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
    size = shape[0] * shape[1] * shape[2]
    if size > ELEMENTS:
        raise WorkLimit(f"the {prefix}", size, ELEMENTS, "elements", registers.offset)
    return FeatureMap(
        what=prefix,
        region=registers[f"{prefix}_REGION"],
        tiles=split_tiles(shape[0], shape[1], registers, prefix),
        shape=shape,
        strides=(
            registers[f"{prefix}_STRIDE_Y"],
            registers[f"{prefix}_STRIDE_X"],
            registers[f"{prefix}_STRIDE_C"] if bricks else dtype.itemsize,
        ),
        bricks=bricks,
        dtype=dtype,
        offset=registers.offset,
    )
