"""How much work a command's registers describe, and how much of it the model is ready to do.

Registers are 16 bits wide, so that a few words can describe more than any machine can do. What a
command needs is counted before anything is allocated or computed. The unit is an element of a
feature map that is gone over once; a product of a convolution counts for less, because it runs
in compiled code, and a command, a kernel element and a row of a DMA for more, because they are
steps of this program. A unit is in the order of 5 ns.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.npu.errors import WorkLimit
from harness.npu.stream import Operation, Registers

ELEMENTS = 1 << 25  # of one feature map, with its padding; also weights of one command
WEIGHTS = 1 << 27  # of all commands
ENCODED = 1 << 26  # of one stream of weights, padding included
UNITS = 1 << 33  # of all commands: about a minute
LOOPING = 1 << 26  # of a stream with branches, whose end nobody knows: some seconds
KERNEL = 1 << 16  # elements; the U85's largest is 256 x 256
OPERATIONS = 5 << 17  # of a stream without branches
DISTINCT = 3 << 13  # of those; each is kept, in some 6 KiB
KEPT = 1 << 29  # bytes of weights and scales of all commands, as they stand and as they are kept
ROW = 1 << 23  # elements of a row of an elementwise operation, which is worked in 64 bits
DIVISORS = 1 << 20  # of all averages that have one for each position

_PRODUCTS = 32  # of a convolution, per unit
_COMMAND = 1 << 14
_AGAIN = 1 << 10  # a command that differs from an earlier one in addresses alone
_KERNEL_ELEMENT = 1 << 11
_DMA_ROW = 1 << 11
_UNIT, _READ_BLOCK = 64, 128  # the largest OFM microblock and IFM block, in channels
_VECTOR = 16  # channels, at most, that the compiled arithmetic has side by side
_LENGTHS = (
    *("WEIGHT_LENGTH", "WEIGHT1_LENGTH", "WEIGHT2_LENGTH", "WEIGHT3_LENGTH"),
    *("SCALE_LENGTH", "SCALE1_LENGTH"),
)
_MAPPED = frozenset({"CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "RESIZE"})


@dataclass(frozen=True, slots=True)
class Request:
    """What one operation asks for."""

    units: int
    weights: int
    kept: int
    divisors: int


def request(operation: Operation, registers: Registers) -> Request:
    """Raises WorkLimit for what no operation may ask for, before any of it is done."""
    units = 0
    if operation.name in _MAPPED:
        units = _of_maps(operation, registers)
    elif operation.name == "DMA_START":
        units = _of_dma(registers)
    weights, kept = _weights(operation, registers), _kept(operation, registers)
    return Request(units, weights, kept, _divisors(operation, registers))


@dataclass
class Work:
    """What the commands so far ask for. ``limit``: of units."""

    limit: int = UNITS
    units: int = 0
    weights: int = 0
    kept: int = 0
    divisors: int = 0

    def add(self, request: Request, offset: int) -> None:
        """Raises WorkLimit, before any of it is done."""
        self.units += request.units + _COMMAND
        self.weights += request.weights
        self.kept += request.kept
        self.divisors += request.divisors
        _require("the stream", self.weights, WEIGHTS, "weights", offset)
        _require("the stream", self.kept, KEPT, "bytes for its weights and scales", offset)
        _require("the stream", self.divisors, DIVISORS, "divisors of averages", offset)
        _require("the stream", self.units, self.limit, "units of work", offset)

    def again(self, request: Request, offset: int) -> None:
        """For the addresses of another one, which is prepared already and has no weights."""
        self.units += request.units + _AGAIN
        _require("the stream", self.units, self.limit, "units of work", offset)


def check_operations(count: int) -> None:
    """Of a stream, before any of them is looked at. Raises WorkLimit."""
    _require("the stream", count, OPERATIONS, "operations", 0)


def check_distinct(count: int, offset: int) -> None:
    """Of those that differ in more than addresses. Raises WorkLimit."""
    _require("the stream", count, DISTINCT, "operations that are not alike", offset)


def _of_maps(operation: Operation, registers: Registers) -> int:
    """Units of work."""
    name, offset = operation.name, operation.offset
    height, width, depth = (registers.get(f"OFM_{d}_M1") + 1 for d in _DIMENSIONS)
    ofm = height * width * depth
    _require(f"the OFM of {name}", ofm, ELEMENTS, "elements", offset)
    if name == "ELEMENTWISE":
        _require("a row of ELEMENTWISE", width * depth, ROW, "elements", offset)
        return 4 * ofm
    reach = registers.get("KERNEL_HEIGHT_M1") + 1, registers.get("KERNEL_WIDTH_M1") + 1
    ifm_depth = registers.get("IFM_DEPTH_M1") + 1
    if name == "RESIZE":  # its kernel registers hold the size of the IFM
        between = max(reach[0], height) * max(reach[1], width) * depth
        _require("RESIZE", between, ELEMENTS, "elements between its two directions", offset)
        return 4 * between
    kernel = _kernel(registers, reach)
    _require(f"the kernel of {name}", kernel, KERNEL, "elements", offset)
    read = ifm_depth if name in ("CONV", "POOL") else depth
    padded = read * _padded(registers, height, reach[0], 0) * _padded(registers, width, reach[1], 1)
    _require(f"the IFM of {name} with its padding", padded, ELEMENTS, "elements", offset)
    if name == "DEPTHWISE":
        room = padded // depth * _up(depth, _VECTOR)
        _require("the IFM of DEPTHWISE in vectors", room, 2 * ELEMENTS, "elements", offset)
    steps = kernel * _KERNEL_ELEMENT + 4 * (padded + ofm)
    if name == "CONV":
        steps += ofm * kernel * ifm_depth // _PRODUCTS + height * width * kernel * ifm_depth
    else:
        steps += height * width * kernel * max(read, depth)
    return steps


_DIMENSIONS = ("HEIGHT", "WIDTH", "DEPTH")


def _kernel(registers: Registers, reach: tuple[int, int]) -> int:
    """KERNEL_*_M1 is the dilated size - 1; KERNEL_STRIDE has the dilation in bits 4 (y), 3 (x)."""
    form = registers.get("KERNEL_STRIDE")
    dilation = 1 + (form >> 4 & 1), 1 + (form >> 3 & 1)
    return ((reach[0] - 1) // dilation[0] + 1) * ((reach[1] - 1) // dilation[1] + 1)


def _padded(registers: Registers, count: int, reach: int, axis: int) -> int:
    """Rows or columns that the kernel goes over, padding included."""
    form = registers.get("KERNEL_STRIDE")
    low, high = (1, 9) if axis == 0 else (0, 6)
    stride = 1 + (form >> low & 1) + 2 * (form >> high & 1)
    return (count - 1) * stride + reach


def _weights(operation: Operation, registers: Registers) -> int:
    """None where IFM2 holds them. They are put in order in an array that has room for blocks."""
    depthwise = operation.name == "DEPTHWISE"
    if not depthwise and (operation.name != "CONV" or operation.parameter & 1):
        return 0
    reach = registers.get("KERNEL_HEIGHT_M1") + 1, registers.get("KERNEL_WIDTH_M1") + 1
    depth, block = registers.get("OFM_DEPTH_M1") + 1, registers.get("OFM_BLK_DEPTH_M1") + 1
    read = 1 if depthwise else registers.get("IFM_DEPTH_M1") + 1
    kernel = _kernel(registers, reach)
    room = kernel * (depth + max(block, _UNIT) + _UNIT) * (read + _READ_BLOCK)
    _require(operation.name, room, 2 * ELEMENTS, "weights and places for them", operation.offset)
    return kernel * depth * read


def _kept(operation: Operation, registers: Registers) -> int:
    """What is there of them, and what is made of it: weights of 16 bits, in vectors of output
    channels and in pairs of input channels, and five numbers of a scale for each channel."""
    if operation.name not in ("CONV", "DEPTHWISE"):
        return 0
    depth, single = registers.get("OFM_DEPTH_M1") + 1, operation.name == "DEPTHWISE"
    reach = registers.get("KERNEL_HEIGHT_M1") + 1, registers.get("KERNEL_WIDTH_M1") + 1
    read = 1 if single else registers.get("IFM_DEPTH_M1") + 1
    made = 2 * _kernel(registers, reach) * _up(depth, _VECTOR) * _up(read, 2)
    there = sum(registers.get(name) & 0xFFFFFFFF for name in _LENGTHS)
    return made + 5 * 8 * _up(depth, _VECTOR) + there


def _divisors(operation: Operation, registers: Registers) -> int:
    """Padding makes them differ."""
    pads = (registers.get(f"IFM_PAD_{side}") for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
    if operation.name != "POOL" or operation.parameter & 7 != 1 or not any(pads):
        return 0
    return (registers.get("OFM_HEIGHT_M1") + 1) * (registers.get("OFM_WIDTH_M1") + 1)


def _up(count: int, unit: int) -> int:
    return (count + unit - 1) // unit * unit


def _of_dma(registers: Registers) -> int:
    target = registers.get("DMA0_DST_REGION") | registers.get("DMA0_SRC_REGION")
    rows = planes = 1
    if target >> 9 & 7:  # strides, or indices
        rows, planes = registers.get("DMA0_SIZE0"), registers.get("DMA0_SIZE1", 1)
        planes = max(1, planes) if target >> 9 & 3 == 2 else 1
    moved = registers.get("DMA0_LEN") * max(1, rows) * planes
    _require("DMA", moved, 8 * ELEMENTS, "bytes", registers.offset)
    return moved // 8 + rows * planes * _DMA_ROW


def _require(what: str, amount: int, limit: int, unit: str, offset: int) -> None:
    if amount > limit:
        raise WorkLimit(what, amount, limit, unit, offset)
