"""Where ExecuTorch's C++ kernels deliberately differ from its Python definitions.

Each entry is the kernels' definition of one operator, exact to the bit, with the reason. A
program stores its outputs by both where they differ: ``--oracle`` selects the expected one. A
checkout's runner whose outputs equal the other one shows a named difference. Any other difference
is a mismatch. There is no tolerance.

Read in ``backends/cortex_m/ops`` and ``kernels`` of ExecuTorch (August 2026) and in CMSIS-NN 7,
and for a core with Helium measured against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.export.child.bounds import schema_name
from harness.firmware.source import Arithmetic


@dataclass(frozen=True)
class KernelDefinition:
    """The kernels' definition of ``operator`` (without overload).

    ``compute`` takes the operator's arguments by their names in its schema, as their order has
    changed (``ceil_mode`` came with ExecuTorch's pull request 21039). ``helium``: only for kernels
    with it, or only for those without; None: for all."""

    name: str
    operator: str
    compute: Callable[..., torch.Tensor]
    helium: bool | None = None


class Kernels:
    """Computes an operator's result by one arithmetic, and collects the differences to Python's."""

    def __init__(self, compile_target: str, arithmetic: Arithmetic = Arithmetic.CMSIS_NN) -> None:
        helium = compile_target.startswith(_HELIUM)
        follows = DEFINITIONS if arithmetic is Arithmetic.CMSIS_NN else ()
        fitting = [d for d in follows if d.helium is None or d.helium is helium]
        self._by_operator = {d.operator: d for d in fitting}
        self._met: set[str] = set()

    @property
    def met(self) -> tuple[str, ...]:
        """The names of the differences that occurred, in the order of the definitions."""
        return tuple(d.name for d in DEFINITIONS if d.name in self._met)

    def __call__(
        self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], python: Any
    ) -> Any:
        """``python``: the result by Python's definition of ``target``."""
        name = schema_name(target)
        if (in_order := _IN_ORDER.get(name)) is not None:
            return in_order(*args, **kwargs)
        definition = self._by_operator.get(name)
        if definition is None:
            return python
        names = (argument.name for argument in target._schema.arguments)
        computed = definition.compute(**dict(zip(names, args, strict=False)), **kwargs)
        if torch.equal(computed, python):
            return python
        self._met.add(definition.name)
        return torch.empty_like(python).copy_(computed)


def undilated(target: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a convolution's arguments with its dilation as zeros between the weights.

    ExecuTorch's Python definition of a dilated ``cortex_m`` convolution raises: torch has no such
    convolution of int32 (``backends/cortex_m/ops/operators.py``, ``quantized_conv2d_impl``). Height
    and width are the middle dimensions of the weights of every such operator."""
    name = schema_name(target)
    if not (name.startswith("cortex_m::quantized_") and "conv2d" in name):
        return args
    named = dict(zip((a.name for a in target._schema.arguments), args, strict=False))
    if all(step == 1 for step in named["dilation"]):
        return args
    weight = named["weight"]
    spread = [
        d * (size - 1) + 1 for d, size in zip(named["dilation"], weight.shape[1:3], strict=True)
    ]
    spaced = weight.new_zeros((weight.shape[0], *spread, weight.shape[3]))
    spaced[:, :: named["dilation"][0], :: named["dilation"][1]] = weight
    return tuple((named | {"weight": spaced, "dilation": [1, 1]}).values())


def _inverse(scale: float) -> torch.Tensor:
    """Invert a scale that is rounded to float32 first, as the kernels do."""
    return torch.tensor(1.0, dtype=torch.float32) / torch.tensor(scale, dtype=torch.float32)


def _quantize_float_scale(
    input: torch.Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Quantise by 1 / float32(scale); Python's definition rounds 1 / scale to float32."""
    rounded = torch.round(input * _inverse(scale)) + zero_point
    return torch.clamp(rounded, quant_min, quant_max).to(dtype)


def _quantize_fused(
    input: torch.Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Quantise as Helium does, which rounds once (vfmaq).

    It does not round the product with the inverse scale to float32 before it rounds to an integer;
    Python's definition rounds twice. A float32 product is exact in float64."""
    x = input
    inverse = _inverse(scale)
    flat = x.permute(x.dim_order()).contiguous().flatten()
    lanes = 16 if dtype == torch.int8 else 8
    fused = torch.round(flat.double() * inverse.double())
    plain = torch.round(flat * inverse).double()  # the kernel computes the rest of a row one by one
    whole = flat.numel() // lanes * lanes
    chosen = torch.cat([fused[:whole], plain[whole:]])
    result = torch.clamp(chosen + zero_point, quant_min, quant_max).to(dtype)
    order = x.dim_order()
    back = [order.index(d) for d in range(len(order))]
    return result.reshape([x.shape[d] for d in order]).permute(back)


def _avg_pool_integer(
    input: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool = False,
    **_rest: Any,
) -> torch.Tensor:
    """Return the integer sum of a window over the number of its elements, half away from zero.

    Python's definition averages floats and rounds half to even."""
    ones = torch.ones_like(input, dtype=torch.float64)

    def windows(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(
            values,
            _pair(kernel_size),
            _pair(stride),
            _pair(padding),
            ceil_mode,
            divisor_override=1,
        ).to(torch.int64)

    total, count = windows(input.double()), windows(ones)
    half = torch.where(total > 0, count // 2, -(count // 2))
    mean = torch.div(total + half, count, rounding_mode="trunc")
    return torch.clamp(mean, -128, 127).to(torch.int8)


def _avg_pool_integer_nhwc(input: torch.Tensor, **rest: Any) -> torch.Tensor:
    pooled = _avg_pool_integer(input.permute(0, 3, 1, 2), **rest)
    return pooled.permute(0, 2, 3, 1).contiguous()


def _pair(values: Sequence[int]) -> list[int]:
    return [values[0], values[-1]]


def _mm_in_order(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    """Sum one product after the other, as the kernel does; torch sums in blocks of its choice."""
    total = torch.zeros((self.shape[0], mat2.shape[1]), dtype=self.dtype)
    for k in range(self.shape[1]):
        total = total + self[:, k : k + 1] * mat2[k : k + 1, :]
    return total


def _bilinear(
    x: torch.Tensor,
    _size: Sequence[int] | None,
    corners: bool,
    factors: Sequence[float] | None = None,
) -> torch.Tensor:
    """Interpolate in rows, then between them, rounding each product; torch's weights differ."""
    like = torch.ops.aten.upsample_bilinear2d.vec(x, _size, corners, factors)
    rows, columns = (
        _blend(x.shape[d], like.shape[d], corners, factors[d - 2] if factors else None)
        for d in (2, 3)
    )

    def along(row: torch.Tensor) -> torch.Tensor:
        first, second = (x[:, :, row][:, :, :, at] for at in columns[:2])
        return first * columns[2] + second * columns[3]

    top, bottom = (along(row) for row in rows[:2])
    return torch.empty_like(like).copy_(top * rows[2][:, None] + bottom * rows[3][:, None])


def _blend(
    before: int, after: int, corners: bool, factor: float | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the two neighbours of each output position, and the weights of both."""
    position = torch.arange(after, dtype=torch.float32)
    if before == after:
        same = position.to(torch.int64)
        return same, same, torch.ones(after), torch.zeros(after)
    if corners:
        at = torch.tensor((before - 1) / (after - 1) if after > 1 else 0.0) * position
    else:
        scale = torch.tensor(1.0 / (factor or after / before), dtype=torch.float32)
        at = torch.clamp(scale * (position + 0.5) - 0.5, min=0)
    first = torch.clamp(at.floor().to(torch.int64), max=before - 1)
    rest = torch.clamp(at - first, 0, 1)
    return first, torch.clamp(first + 1, max=before - 1), 1 - rest, rest


# Operators whose definition leaves the order of additions open: always in the portable kernels'
# order.
_IN_ORDER: Mapping[str, Callable[..., torch.Tensor]] = {
    "aten::mm": _mm_in_order,
    "aten::upsample_bilinear2d": _bilinear,
}
# Compile targets whose CPU has Helium (MVE): an Ethos-U's is a Cortex-M55 or M85.
_HELIUM = ("cortex-m55", "cortex-m85", "ethos-u")
DEFINITIONS = (
    KernelDefinition(
        "quantize-fused", "cortex_m::quantize_per_tensor", _quantize_fused, helium=True
    ),
    KernelDefinition(
        "quantize-float-scale",
        "cortex_m::quantize_per_tensor",
        _quantize_float_scale,
        helium=False,
    ),
    KernelDefinition(
        "portable-quantize-float-scale",
        "quantized_decomposed::quantize_per_tensor",
        _quantize_float_scale,
    ),
    KernelDefinition("avg-pool-half-away", "cortex_m::quantized_avg_pool2d", _avg_pool_integer),
    KernelDefinition(
        "avg-pool-nhwc-half-away", "cortex_m::quantized_avg_pool2d_nhwc", _avg_pool_integer_nhwc
    ),
)
