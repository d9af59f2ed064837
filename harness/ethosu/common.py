"""What the engines of all generations share: the run's state and the registers' plain fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import accumulate
from harness.ethosu.accumulate import Window
from harness.ethosu.codec import Codec
from harness.ethosu.errors import AccessError
from harness.ethosu.memory import Memory
from harness.ethosu.stream import Registers
from harness.formats.cop import NpuConfig

Array = NDArray[Any]

INT8, INT16, INT32, INT64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
_PRECISIONS = (INT8, INT16, INT32, INT64)


@dataclass
class Context:
    """One inference: memory, and what the NPU keeps between operations."""

    config: NpuConfig
    memory: Memory
    decoded: dict[tuple[object, ...], object]  # content of weights -> ready kernels
    codec: Codec
    chained: dict[int, Array] = field(default_factory=dict)  # U85
    accumulators: Array | None = None  # U85
    condition: bool | None = None  # U85: what BRANCH tests, when it is one element
    macs: int = 0
    counts: dict[str, int] = field(default_factory=dict)


Step = Callable[[Context], None]


def element_type(registers: Registers, register: str, low: int) -> np.dtype[Any]:
    """Signed 8, 16, 32 or 64 bits; the precision field starts at bit ``low``."""
    if not registers.bits(register, 0):
        raise registers.unsupported(f"{register}.activation_type", "UNSIGNED")
    return _PRECISIONS[registers.bits(register, low, 2)]


def is_bricks(registers: Registers, register: str) -> bool:
    layout = registers.bits(register, 6, 2)
    if layout > 1:
        raise registers.unsupported(f"{register}.activation_format", layout)
    return layout == 1


def kernel_window(registers: Registers) -> Window:
    """Kernel, stride, dilation and padding registers; KERNEL_*_M1 is the dilated size - 1."""
    strides = registers["KERNEL_STRIDE"]
    stride_x = 1 + (strides & 1) + 2 * (strides >> 6 & 1)
    stride_y = 1 + (strides >> 1 & 1) + 2 * (strides >> 9 & 1)
    dilation_x, dilation_y = 1 + (strides >> 3 & 1), 1 + (strides >> 4 & 1)
    if strides >> 5 & 1:
        raise registers.unsupported("KERNEL_STRIDE.decomposition", "D4X4")
    reach_y, reach_x = registers["KERNEL_HEIGHT_M1"], registers["KERNEL_WIDTH_M1"]
    if reach_y % dilation_y or reach_x % dilation_x:
        raise registers.unsupported(
            "KERNEL_HEIGHT_M1, KERNEL_WIDTH_M1", (reach_y, reach_x), "not a dilated kernel"
        )
    pads = tuple(registers[f"IFM_PAD_{side}"] for side in ("TOP", "LEFT", "BOTTOM", "RIGHT"))
    window = Window(
        kernel=(reach_y // dilation_y + 1, reach_x // dilation_x + 1),
        stride=(stride_y, stride_x),
        dilation=(dilation_y, dilation_x),
        pads=(pads[0], pads[1], pads[2], pads[3]),
        output=(registers["OFM_HEIGHT_M1"] + 1, registers["OFM_WIDTH_M1"] + 1),
    )
    check_window(registers, window)
    return window


def check_window(registers: Registers, window: Window) -> None:
    if min(window.needed) < 1:
        raise registers.unsupported("KERNEL, PAD and OFM size", window)


def averaged(registers: Registers, window: Window) -> NDArray[np.int64]:
    """How many elements each average is of; nobody has confirmed an average of none."""
    counts = accumulate.valid_counts(window)
    if not counts.all():
        raise registers.unsupported("IFM_PAD", window.pads, "an average of padding alone")
    return counts


def divisors(registers: Registers, window: Window) -> NDArray[np.int64]:
    """Of averages: (height, width, 1), or one for all."""
    if not any(window.pads):
        return np.full(1, window.kernel[0] * window.kernel[1], np.int64)
    counts = averaged(registers, window)
    return counts.reshape(-1)[:1] if counts.min() == counts.max() else counts[:, :, None]


def ofm_shape(registers: Registers) -> tuple[int, int, int]:
    return (
        registers["OFM_HEIGHT_M1"] + 1,
        registers["OFM_WIDTH_M1"] + 1,
        registers["OFM_DEPTH_M1"] + 1,
    )


def upscaled_source(registers: Registers, needed: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns in memory for ``needed`` ones after IFM_UPSCALE."""
    mode = registers["IFM_UPSCALE"]
    if mode > 2:
        raise registers.unsupported("IFM_UPSCALE", mode)
    return needed if mode == 0 else (-(-needed[0] // 2), -(-needed[1] // 2))


def upscale(values: Array, mode: int, needed: tuple[int, int]) -> Array:
    """1: every element twice in both directions; 2: zeros between (``values`` are centred)."""
    if mode == 0:
        return values
    if mode == 1:
        return values.repeat(2, 0).repeat(2, 1)[: needed[0], : needed[1]]
    result = np.zeros((*needed, values.shape[2]), values.dtype)
    result[::2, ::2] = values
    return result


def check_accumulators(values: Array, limit: float, bits: int, offset: int) -> None:
    """Nobody has confirmed whether the accumulators wrap or saturate, so neither may happen."""
    if limit < 2.0 ** (bits - 1):
        return
    if np.abs(values.astype(np.float64)).max(initial=0) >= 2.0 ** (bits - 1):
        raise AccessError(f"an accumulator needs more than its {bits} bits", offset)


def largest_input(dtype: np.dtype[Any], zero_point: int) -> float:
    limits = np.iinfo(dtype)
    return float(max(limits.max - zero_point, zero_point - limits.min))


def leading_zeros(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of 32-bit numbers."""
    unsigned = values & 0xFFFFFFFF
    _, exponents = np.frexp(unsigned.astype(np.float64))
    return 32 - exponents.astype(np.int64)
