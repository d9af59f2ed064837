"""Seeded random inputs: for calibration, for batch-norm statistics and for the input sets.

numpy draws them, because its generators give the same numbers on every CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

Sample = tuple[torch.Tensor, ...]  # one value for each input of a model


@dataclass(frozen=True)
class InputRange:
    """One input and the interval that its values are drawn from, both ends included."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    low: float
    high: float


def shipped_ranges(examples: Sequence[torch.Tensor]) -> tuple[InputRange, ...]:
    """-1 to 1, the interval of the MLPerf Tiny examples; the toy models work in it too."""
    return tuple(InputRange(tuple(e.shape), e.dtype, -1.0, 1.0) for e in examples)


def observed_ranges(samples: Sequence[Sequence[torch.Tensor]]) -> tuple[InputRange, ...]:
    """The interval that the user's samples span, for each input.

    A constant input is widened around zero: a single value would make every set the same.
    """
    ranges = []
    for same_input in zip(*samples, strict=True):
        values = torch.cat([tensor.reshape(-1).to(torch.float64) for tensor in same_input])
        low = float(values.min()) if values.numel() else 0.0
        high = float(values.max()) if values.numel() else 0.0
        if low == high and same_input[0].is_floating_point():
            high = max(abs(low), 1.0)
            low = -high
        ranges.append(InputRange(tuple(same_input[0].shape), same_input[0].dtype, low, high))
    return tuple(ranges)


def draw(
    ranges: Sequence[InputRange], generator: np.random.Generator, *, whole_range: bool = False
) -> Sample:
    """Draws a sample: noise of random brightness and contrast, or of the ``whole_range``.

    Noise of one distribution would look alike to a network that averages its features.
    """
    return tuple(_draw_one(item, generator, whole_range) for item in ranges)


def _draw_one(item: InputRange, generator: np.random.Generator, whole_range: bool) -> torch.Tensor:
    if item.dtype is torch.bool:
        return torch.from_numpy(np.asarray(generator.random(item.shape) < 0.5))
    if not item.dtype.is_floating_point:
        whole = generator.integers(int(item.low), int(item.high), item.shape, endpoint=True)
        return torch.from_numpy(np.asarray(whole)).to(item.dtype)
    contrast = 1.0 if whole_range else generator.uniform(0.2, 1.0)
    brightness = generator.uniform(0.0, 1.0 - contrast) if not whole_range else 0.0
    unit = brightness + contrast * generator.random(item.shape)
    return torch.from_numpy(np.asarray(item.low + (item.high - item.low) * unit)).to(item.dtype)


def channels_last(sample: Sequence[torch.Tensor]) -> Sample:
    """4-D tensors in NHWC memory order.

    Always converted: with one channel a tensor counts as channels-last already but keeps its
    NCHW strides (as ExecuTorch's aot_arm_compiler.py remarks).
    """
    return tuple(t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in sample)


def in_layout_of(example: Sequence[torch.Tensor], sample: Sequence[torch.Tensor]) -> Sample:
    """Channels-last where the example is, contiguous everywhere else."""
    last = torch.channels_last
    return tuple(
        t.to(memory_format=last)
        if e.dim() == 4 and not e.is_contiguous() and e.is_contiguous(memory_format=last)
        else t.contiguous()
        for e, t in zip(example, sample, strict=True)
    )
