"""A seeded source of shapes, tensors and quantisation parameters for operator calls."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.kernels.kernel_program import Case, Constant
from tests.late import Late

torch = Late("torch")

INT32_MAX = 2**31 - 1


class Draw:
    """A seeded source of shapes, tensors and quantisation parameters. ``number`` of the call that
    is drawn, for groups that go through a list."""

    def __init__(self, seed: int) -> None:
        self.number = seed
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)

    def int8(self, *shape: int) -> torch.Tensor:
        return torch.randint(-128, 128, shape, generator=self.torch, dtype=torch.int8)

    def image(self, n: int, c: int, h: int, w: int) -> torch.Tensor:
        return self.int8(n, c, h, w).to(memory_format=torch.channels_last)

    def weights(self, *shape: int) -> torch.Tensor:
        if self.random.random() < 0.15:
            return torch.full(shape, -128, dtype=torch.int8)
        return self.int8(*shape)

    def zero_point(self) -> int:
        return self.random.choice([-128, 127, 0, self.random.randint(-128, 127)])

    def multiplier(self) -> int:
        return self.random.choice([1 << 30, INT32_MAX, self.random.randint(1 << 30, INT32_MAX)])

    def bounds(self) -> tuple[int, int]:
        choice = self.random.random()
        if choice < 0.5:
            return -128, 127
        low = self.random.randint(-128, 100)
        return low, self.random.randint(low, 127)

    def scales(self, channels: int, gain: float) -> tuple[Constant, Constant]:
        """Per-channel scales that bring accumulators of size `gain` near int8, and some that
        do not: everything lost, nothing shifted, shifted left."""
        usual = -max(0, int(gain).bit_length() - 7)
        wild = self.random.random() < 0.25
        shifts = [
            self.random.choice([-30, -31, 0, 1, 4, 7, usual])
            if wild
            else usual + self.random.randint(-1, 2 if usual < -2 else 0)
            for _ in range(channels)
        ]
        multipliers = [self.multiplier() for _ in range(channels)]
        as_int = lambda values: Constant(torch.tensor(values, dtype=torch.int32))  # noqa: E731
        return as_int(multipliers), as_int(shifts)

    def bias(self, channels: int) -> Constant | None:
        if self.random.random() < 0.3:
            return None
        values = torch.randint(-(1 << 14), 1 << 14, (channels,), generator=self.torch)
        return Constant(values.to(torch.int32))


# Name of a group of calls -> what draws one of them, and how many are drawn.
Makers = dict[str, tuple[Callable[[Draw], Case], int]]


def window(draw: Draw, kernels: list[int]) -> dict[str, int]:
    """One axis of a sliding window that produces at least one output."""
    r = draw.random
    while True:
        axis = {
            "size": r.randint(1, 14),
            "kernel": r.choice(kernels),
            "stride": r.choice([1, 1, 2, 3]),
            "pad": r.choice([0, 1, 1, 2, 3]),
            "dilation": r.choice([1, 1, 1, 2]),
        }
        span = axis["dilation"] * (axis["kernel"] - 1) + 1
        if axis["pad"] < span and axis["size"] + 2 * axis["pad"] >= span:
            return axis


def pair(h: dict[str, int], w: dict[str, int], key: str) -> list[int]:
    return [h[key], w[key]]


def pool_axes(draw: Draw) -> tuple[dict[str, int], dict[str, int]]:
    axes = [window(draw, [1, 2, 3, 4]) for _ in range(2)]
    for axis in axes:
        axis.update(dilation=1, pad=min(axis["pad"], axis["kernel"] // 2))
        axis["size"] = max(axis["size"], axis["kernel"])
    return axes[0], axes[1]


def any_tensor(draw: Draw, *shape: int) -> torch.Tensor:
    """Small whole numbers, so that floats are exact in any order of summation."""
    kind = draw.random.choice([torch.float32, torch.float32, torch.int8, torch.int32])
    return torch.randint(-9, 10, shape, generator=draw.torch).to(kind)
