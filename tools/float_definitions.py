"""Operators that ExecuTorch's definitions leave open in the last bits of floats, as the bundled
runner computes them: each sum one product after the other, exp() as a series of its own, each step
rounded to float32.

PyTorch sums in blocks of its choice, folds a norm into a factor and an offset, and has an exp() of
its own. An int8 value that is made of such a float may come out one step away, and a program with
one would not be exact although every kernel does what its file says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

Tensors = tuple[torch.Tensor, ...]

_LOWEST_EXPONENT = -87.0
_LN2_HIGH = 0.693359375
_ROUNDER = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer


def _convolution(
    like: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    _output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Starts with the bias; the kernel's positions are outside, its channels inside. A transposed
    one stays as it is."""
    if transposed or x.dtype != torch.float32:
        return like
    dims = x.dim() - 2
    around = [amount for pad in reversed(_each(padding, dims)) for amount in (pad, pad)]
    image = torch.nn.functional.pad(x, around).unflatten(1, (groups, -1))
    taps = weight.unflatten(0, (groups, -1))  # groups, outputs, inputs, positions
    total = torch.zeros(like.shape) if bias is None else bias.reshape(1, -1, *[1] * dims)
    total = total.expand(like.shape).unflatten(1, (groups, -1))
    steps, spread = _each(stride, dims), _each(dilation, dims)
    for place in itertools.product(*map(range, weight.shape[2:])):
        window = tuple(
            slice(start * wide, start * wide + (size - 1) * step + 1, step)
            for start, wide, step, size in zip(place, spread, steps, like.shape[2:], strict=True)
        )
        for channel in range(weight.shape[1]):
            factor = taps[:, :, channel][(..., *place)].reshape(1, groups, -1, *[1] * dims)
            total = (
                total + image[(slice(None), slice(None), channel, *window)].unsqueeze(2) * factor
            )
    return _in_layout(total.flatten(1, 2), like)


def _each(values: Sequence[int], dims: int) -> list[int]:
    return [*values] if len(values) == dims else [values[0]] * dims


def _bmm(like: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(like.shape)
    for k in range(x.shape[2]):
        total = total + x[:, :, k : k + 1] * y[:, k : k + 1, :]
    return total


def _layer_norm(
    _like: Tensors,
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> Tensors:
    """The variance is the mean square less the squared mean."""
    rows = x.flatten(x.dim() - len(shape))
    total = squares = torch.zeros(rows.shape[:-1])
    for i in range(rows.shape[-1]):
        total, squares = total + rows[..., i], squares + rows[..., i] * rows[..., i]
    mean = total / rows.shape[-1]
    deviation = _sqrt(squares / rows.shape[-1] - mean * mean + torch.tensor(eps))
    statistics = [
        value.reshape(*x.shape[: -len(shape)], *[1] * len(shape)) for value in (mean, deviation)
    ]
    scale, offset = _parameters(weight, bias, tuple(shape))
    normal = (x - statistics[0]) / statistics[1]
    return normal * scale + offset, statistics[0], 1 / statistics[1]


def _batch_norm(
    like: Tensors,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    _momentum: float,
    eps: float,
) -> Tensors:
    """The inverse deviation is computed in double."""
    inverse = (1.0 / _sqrt(variance.double() + eps)).float()
    shape = (-1, *[1] * (x.dim() - 2))
    scale, offset = _parameters(weight, bias, tuple(mean.shape))
    folded = (x - mean.reshape(shape)) * inverse.reshape(shape)
    result = folded * scale.reshape(shape) + offset.reshape(shape)
    return _in_layout(result, like[0]), *like[1:]


def _softmax(like: torch.Tensor, x: torch.Tensor, dim: int, _half_to_float: bool) -> torch.Tensor:
    lines = x.movedim(dim, -1)
    powers = _decay(lines - lines.amax(-1, keepdim=True))
    total = torch.zeros(powers.shape[:-1])
    for i in range(powers.shape[-1]):
        total = total + powers[..., i]
    return _in_layout((powers / total.unsqueeze(-1)).movedim(-1, dim), like)


def _sigmoid(like: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    power = _decay(-x.abs())
    return _in_layout(torch.where(x > 0, torch.ones(()), power) / (1 + power), like)


def _decay(x: torch.Tensor) -> torch.Tensor:
    """exp() of what is at most 0, as targets/runner/kernels/exponential.cpp has it: 2^n times a
    series in what is left, ln 2 in two parts."""
    bounded = x.clamp(min=_LOWEST_EXPONENT)
    n = (bounded * _single(1.44269504) + _ROUNDER) - _ROUNDER
    rest = (bounded - n * _LN2_HIGH) - n * _single(-2.12194440e-4)
    power = torch.full_like(x, 1 / 5040)
    for factor in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0):
        power = power * rest + _single(factor)
    return torch.where(x < _LOWEST_EXPONENT, torch.zeros(()), torch.ldexp(power, n))


def _single(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float32)


def _sqrt(value: torch.Tensor) -> torch.Tensor:
    """Rounded to the nearest; torch's own root of a float32 is not always (2.13)."""
    return torch.from_numpy(np.sqrt(value.numpy()))


def _parameters(
    weight: torch.Tensor | None, bias: torch.Tensor | None, shape: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.ones(shape) if weight is None else weight,
        torch.zeros(shape) if bias is None else bias,
    )


def _in_layout(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(like).copy_(value)


# Each takes torch's result, and then what the operator takes.
DEFINITIONS: Mapping[str, Callable[..., Any]] = {
    "aten::convolution": _convolution,
    "aten::bmm": _bmm,
    "aten::native_layer_norm": _layer_norm,
    "aten::_native_batch_norm_legit_no_training": _batch_norm,
    "aten::_softmax": _softmax,
    "aten::sigmoid": _sigmoid,
}


def as_the_runner(operator: str, torchs: Any, *arguments: Any, **options: Any) -> Any:
    """What the runner computes of an operator; torch's result where it is not one of these. Raises
    ValueError where the two differ by more than rounding: then a definition here is wrong."""
    if operator not in DEFINITIONS:
        return torchs
    result = DEFINITIONS[operator](torchs, *arguments, **options)
    for ours, theirs in zip(_several(result), _several(torchs), strict=True):
        finite = theirs[theirs.isfinite()].abs()
        most = 1e-4 * float(finite.max()) + 1e-6 if finite.numel() else 0.0
        if not torch.allclose(ours, theirs, rtol=0.0, atol=most, equal_nan=True):
            raise ValueError(f"{operator}: another result than torch's, not only rounded otherwise")
    return result


def _several(result: Any) -> Tensors:
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)
