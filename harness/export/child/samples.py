"""Seeded random inputs: for calibration, for batch-norm statistics and for the input sets.

numpy draws them, because its generators give the same numbers on every CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]
_FEATURES_SPAN = 1 / 8  # of the whole input's interval
_SEEN = 8  # elements of a feature; of fewer the interval is not known
_FEW = 16  # elements of an input; so few random numbers do not span its interval
_ENDS = 3  # elements whose ends are combined
Sample = tuple[torch.Tensor, ...]  # one value for each input of a model


@dataclass(frozen=True)
class InputRange:
    """One input and the interval that its values are drawn from, both ends included.

    ``low`` and ``high`` are of the whole input or, along one dimension, of each feature: of a shape
    that broadcasts to the input's."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    low: Array
    high: Array


def shipped_ranges(examples: Sequence[torch.Tensor]) -> tuple[InputRange, ...]:
    """-1 to 1, the interval of the MLPerf Tiny examples; the toy models work in it too."""
    low, high = np.array(-1.0), np.array(1.0)
    return tuple(InputRange(tuple(e.shape), e.dtype, low, high) for e in examples)


def observed_ranges(samples: Sequence[Sequence[torch.Tensor]]) -> tuple[InputRange, ...]:
    """Return the interval that the user's samples span, for each input or feature.

    Features have their own where they differ much. A constant input is widened around zero: a
    single value would make every set the same."""
    ranges = []
    for same_input in zip(*samples, strict=True):
        first = same_input[0]
        values = np.stack([tensor.to(torch.float64).contiguous().numpy() for tensor in same_input])
        low, high = _intervals(values) if values.size else (np.array(0.0), np.array(0.0))
        if (low == high).all() and first.is_floating_point():
            high = np.maximum(np.abs(low), 1.0)
            low = -high
        ranges.append(InputRange(tuple(first.shape), first.dtype, low, high))
    return tuple(ranges)


def _intervals(values: Array) -> tuple[Array, Array]:
    """Return the bounds of samples that are stacked.

    Those of the whole input, unless along one of its dimensions some index spans far less of that
    than the whole, as far as can be seen."""
    low, high = values.min(), values.max()
    best, narrowest = (low, high), high - low
    for dim in range(2, values.ndim):  # 0: the samples, 1: the batch
        others = tuple(d for d in range(values.ndim) if d != dim)
        lows, highs = values.min(axis=others), values.max(axis=others)
        spans = highs - lows
        seen = values.size // values.shape[dim] >= _SEEN
        if seen and spans.min() < _FEATURES_SPAN * (high - low) and spans.mean() < narrowest:
            narrowest = spans.mean()
            shape = [-1 if d == dim else 1 for d in range(1, values.ndim)]
            best = lows.reshape(shape), highs.reshape(shape)
    return np.asarray(best[0]), np.asarray(best[1])


def draw(
    ranges: Sequence[InputRange], generator: np.random.Generator, *, whole_range: bool = False
) -> Sample:
    """Draws a sample: noise of random brightness and contrast, or of the ``whole_range``.

    Noise of one distribution would look alike to a network that averages its features.
    """
    return tuple(_draw_one(item, generator, whole_range) for item in ranges)


def spanning(samples: Sequence[Sample], ranges: Sequence[InputRange]) -> tuple[Sample, ...]:
    """Widen ``samples`` for calibration.

    In the first of them each element of a small input is at an end of its interval, in all
    combinations of neighbours: a quantiser that saw less of the interval would clip the input sets.
    """
    corners = [
        tuple(
            _at_ends(item, tensor, number, place)
            for place, (item, tensor) in enumerate(zip(ranges, sample, strict=True))
        )
        for number, sample in enumerate(samples[: 2**_ENDS])
    ]
    return (*corners, *samples[2**_ENDS :])


def _at_ends(item: InputRange, drawn: torch.Tensor, number: int, place: int) -> torch.Tensor:
    if not item.dtype.is_floating_point or drawn.numel() >= _FEW:
        return drawn
    bits = (np.arange(drawn.numel()).reshape(item.shape) + place) % _ENDS
    high = number >> bits & 1
    return torch.from_numpy(np.asarray(np.where(high, item.high, item.low))).to(item.dtype)


def _draw_one(item: InputRange, generator: np.random.Generator, whole_range: bool) -> torch.Tensor:
    if item.dtype is torch.bool:
        return torch.from_numpy(np.asarray(generator.random(item.shape) < 0.5))
    if not item.dtype.is_floating_point:
        low, high = item.low.astype(np.int64), item.high.astype(np.int64)
        whole = generator.integers(low, high, item.shape, endpoint=True)
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


def equal(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
