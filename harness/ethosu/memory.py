"""Regions, and the check that every access stays inside its region.

The region numbers are those of ``BasePointerIndex`` in regor: 0 weights, 1 scratch, 2 fast
scratch, 3 inputs and 4 outputs when input and output have regions of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.errors import AccessError

WEIGHTS, SCRATCH, FAST_SCRATCH, INPUTS, OUTPUTS = range(5)
REGION_NAMES = {
    WEIGHTS: "weights",
    SCRATCH: "scratch",
    FAST_SCRATCH: "fast scratch",
    INPUTS: "inputs",
    OUTPUTS: "outputs",
}
Bytes = NDArray[np.uint8]


@dataclass
class Memory:
    """``regions`` are the caller's own arrays and are changed in place.

    In strict mode ``written`` has, for each region, a 1 for each byte that the NPU has written.
    ``moved`` counts bytes per (region, kind of access).
    """

    regions: Mapping[int, Bytes]
    internal: Bytes
    strict: bool = True
    written: dict[int, Bytes] = field(default_factory=dict)
    moved: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.strict:
            self.written = {n: np.zeros(len(r), np.uint8) for n, r in self.regions.items()}

    def region(self, number: int, low: int, high: int, what: str, offset: int) -> Bytes:
        """The region's bytes, once ``low <= address < high`` is known to be inside."""
        found = self.regions.get(number)
        if found is None:
            raise AccessError(f"{what} uses region {number}, which does not exist", offset)
        if low < 0 or high > len(found):
            name = REGION_NAMES.get(number, str(number))
            raise AccessError(
                f"{what} reaches {low:#x}..{high:#x}, region {number} ({name}) "
                f"has {len(found):#x} bytes",
                offset,
            )
        return found

    def read(self, number: int, address: int, length: int, what: str, offset: int) -> Bytes:
        found = self.region(number, address, address + length, what, offset)
        self.count(number, what, length)
        return found[address : address + length]

    def write(self, number: int, address: int, data: Bytes, what: str, offset: int) -> None:
        found = self.region(number, address, address + len(data), what, offset)
        if number == WEIGHTS:
            raise AccessError(f"{what} writes to the read-only weights", offset)
        found[address : address + len(data)] = data
        self.count(number, what, len(data))
        if self.strict:
            self.written[number][address : address + len(data)] = 1

    def write_internal(self, at: int, data: Bytes, offset: int) -> None:
        """To the NPU's own memory: shared RAM, or the U85's RAM of look-up tables."""
        if at < 0 or at + len(data) > len(self.internal):
            raise AccessError(
                f"DMA writes {len(data)} bytes at internal address {at:#x}, "
                f"there are {len(self.internal):#x}",
                offset,
            )
        self.internal[at : at + len(data)] = data

    def count(self, number: int, kind: str, length: int) -> None:
        key = (number, kind)
        self.moved[key] = self.moved.get(key, 0) + length
