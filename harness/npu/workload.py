"""Estimates the work of jobs before they run, and limits it.

Registers are 16 bits wide, so a few words can describe more work than any machine can do.
``feature_map`` and ``fields`` limit the parts of a job, this module the sum. The unit is one pass
over an element of a feature map, about 5 ns. A product of a convolution counts for less (compiled
code), a command, a kernel element and a row of a DMA for more (steps in Python).
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.npu.errors import check_limit
from harness.npu.feature_map import ELEMENTS
from harness.npu.job import Job, Window
from harness.npu.kernel_library import up

UNITS = 1 << 33  # of a stream: about a minute
LOOPING = 1 << 26  # of a stream with branches, whose length is unknown: some seconds
OPERATIONS = 5 << 17  # of a stream without branches
DISTINCT = 3 << 13  # jobs of a stream; each takes about 6 KiB
KEPT = 1 << 29  # bytes of encoded and decoded weights and scales of a stream
ROW = 1 << 23  # elements of a row of an elementwise operation, which are 64-bit in the kernel

_PRODUCTS = 32  # of a convolution, per unit
_COMMAND = 1 << 14
_AGAIN = 1 << 10  # a command that differs from an earlier one only in addresses
_KERNEL_ELEMENT = 1 << 11
_DMA_ROW = 1 << 11
_VECTOR = 16  # channels of the kernel's widest vectors


@dataclass(frozen=True, slots=True)
class JobNeeds:
    """The needs of one job. ``kept``: bytes."""

    units: int
    kept: int


def request(job: Job) -> JobNeeds:
    """Return the needs of a job. Raises WorkLimit for more than a single job may need."""
    if job.copy is not None:
        moved, rows = job.copy.total, job.copy.rows * job.copy.planes
        check_limit("DMA", moved, 8 * ELEMENTS, "bytes", job.offset)
        return JobNeeds(moved // 8 + rows * _DMA_ROW, 0)
    return JobNeeds(_units(job), _kept(job))


@dataclass
class Work:
    """The needs of the commands so far. ``limit``: of units."""

    limit: int = UNITS
    units: int = 0
    kept: int = 0

    def add(self, request: JobNeeds, offset: int) -> None:
        """Add a job. Raises WorkLimit."""
        self.kept += request.kept
        check_limit("the stream", self.kept, KEPT, "bytes for its weights and scales", offset)
        self._add_units(request.units + _COMMAND, offset)

    def again(self, request: JobNeeds, offset: int) -> None:
        """Add a command that shares a job, which has no weights."""
        self._add_units(request.units + _AGAIN, offset)

    def _add_units(self, units: int, offset: int) -> None:
        self.units += units
        check_limit("the stream", self.units, self.limit, "units of work", offset)


def _units(job: Job) -> int:
    assert job.output is not None
    height, width, depth = job.output.shape
    ofm = height * width * depth
    if job.kind == "kElementwise":
        check_limit("a row of ELEMENTWISE", width * depth, ROW, "elements", job.offset)
        return 4 * ofm
    if job.kind == "kResize":
        assert job.first is not None
        rows, columns, _ = job.first.shape
        between = max(rows, height) * max(columns, width) * depth
        what = "elements between its two directions"
        check_limit("RESIZE", between, ELEMENTS, what, job.offset)
        return 4 * between
    if job.window is None:
        return 4 * ofm
    kernel, read = job.window.elements, depth if job.first is None else job.first.shape[2]
    padded = read * _reached(job.window, 0) * _reached(job.window, 1)
    check_limit("the IFM with its padding", padded, ELEMENTS, "elements", job.offset)
    if job.kind == "kDepthwise":
        room, what = padded // depth * up(depth, _VECTOR), "the IFM of DEPTHWISE in vectors"
        check_limit(what, room, 2 * ELEMENTS, "elements", job.offset)
    steps = kernel * _KERNEL_ELEMENT + 4 * (padded + ofm)
    if job.kind in ("kConvolution", "kMatrixProduct"):
        return steps + ofm * kernel * read // _PRODUCTS + height * width * kernel * read
    return steps + height * width * kernel * max(read, depth)


def _reached(window: Window, axis: int) -> int:
    """Rows or columns that the kernel reaches, padding included."""
    return window.needed[axis] + window.pads[axis] + window.pads[axis + 2]


def _kept(job: Job) -> int:
    """Return the bytes of encoded parameters and what is made of them.

    That is 16-bit weights in vectors of output channels and pairs of input channels, and five
    numbers of a scale for each channel. An average has scales for each position, and two arrays to
    compute them."""
    divisors = 0 if job.scaling.multiplier.size == 1 else 7 * 8 * job.scaling.multiplier.size
    if job.parameters is None or job.output is None:
        return divisors
    channels = up(job.output.shape[2], _VECTOR)
    kept = divisors + 5 * 8 * channels + sum(length for _, _, length in job.parameters.spans)
    if not job.parameters.weight_spans or job.window is None or job.first is None:
        return kept
    read = 1 if job.kind == "kDepthwise" else job.first.shape[2]
    return kept + 2 * job.window.elements * channels * up(read, 2)
