"""The regions of one inference.

The region numbers are those of ``BasePointerIndex`` in regor: 0 weights, 1 scratch, 2 fast
scratch, 3 inputs and 4 outputs when input and output have regions of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.npu.errors import AccessError

WEIGHTS, SCRATCH, FAST_SCRATCH, INPUTS, OUTPUTS = range(5)
REGION_NAMES = {
    WEIGHTS: "weights",
    SCRATCH: "scratch",
    FAST_SCRATCH: "fast scratch",
    INPUTS: "inputs",
    OUTPUTS: "outputs",
}
REGIONS = 8  # that a stream may use
Bytes = NDArray[np.uint8]


@dataclass
class Memory:
    """``regions`` are the caller's own arrays and are changed in place; ``internal`` is the NPU's
    own memory: shared RAM, or the U85's RAM of look-up tables.

    In strict mode ``written`` has, for each region, a 1 for each byte that the NPU has written.
    """

    regions: Mapping[int, Bytes]
    internal: Bytes
    strict: bool = True
    written: dict[int, Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, region in self.regions.items():
            if not region.flags.c_contiguous or not (region.flags.writeable or number == WEIGHTS):
                raise ValueError(f"region {number} is not bytes that can be written to")
        if self.strict:
            self.written = {n: np.zeros(len(r), np.uint8) for n, r in self.regions.items()}

    def content(self, number: int, address: int, length: int, what: str, offset: int) -> bytes:
        """Raises AccessError. Nothing has no place."""
        if not length:
            return b""
        region, end = self.regions.get(number), address + length
        if region is None or address < 0 or end > len(region):
            raise self.outside(number, address, end, what, offset)
        return region[address:end].tobytes()

    def outside(self, number: int, low: int, high: int, what: str, offset: int) -> AccessError:
        """Of an access to ``low <= address < high`` that is not inside its region."""
        region = self.regions.get(number)
        if region is None or not 0 <= number < REGIONS:
            return AccessError(f"{what} uses region {number}, which does not exist", offset)
        name = REGION_NAMES.get(number, str(number))
        return AccessError(
            f"{what} reaches {low:#x}..{high:#x}, region {number} ({name}) "
            f"has {len(region):#x} bytes",
            offset,
        )
