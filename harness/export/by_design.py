"""Where ExecuTorch's C++ kernels compute something else than its Python definitions, on purpose.

Each entry is a second definition of one operator, exact to the bit, with the reason. A program's
outputs under these definitions are expected of a checkout's runner, beside those under Python's:
a difference that is one of these has a name, and what it may be is known for every element. Any
other difference is a mismatch. There is no tolerance.

The definitions are those of ExecuTorch's ``cortex_m`` kernels for a core with Helium; read in
``backends/cortex_m/ops`` of ExecuTorch (August 2026) and in CMSIS-NN 7, and measured against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir import EdgeProgramManager
from torch.utils import _pytree as pytree

from harness.export.program import NamedDifference
from harness.export.samples import Sample, channels_last


@dataclass(frozen=True)
class Definition:
    """``compute`` takes the operator's arguments by the names in its schema: where they stand has
    changed (``ceil_mode`` came with ExecuTorch's pull request 21039)."""

    difference: NamedDifference
    compute: Callable[..., torch.Tensor]


class Kernels:
    """Gives an operator's result as the kernels compute it, and remembers where it differed.

    ``helium``: the target's kernels are built for it; the scalar ones were not compared, and are
    taken to follow Python.
    """

    def __init__(self, compile_target: str) -> None:
        self.helium = compile_target.startswith(_HELIUM)
        self._met: set[str] = set()

    @property
    def met(self) -> tuple[NamedDifference, ...]:
        """In the order of the definitions."""
        return tuple(d.difference for d in DEFINITIONS if d.difference.name in self._met)

    def __call__(
        self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], python: Any
    ) -> Any:
        """``python``: the result by Python's definition of ``target``."""
        definition = _BY_OPERATOR.get(_name(target)) if self.helium else None
        if definition is None:
            return python
        computed = definition.compute(**_by_name(target, args), **kwargs)
        if torch.equal(computed, python):
            return python
        self._met.add(definition.difference.name)
        return torch.empty_like(python).copy_(computed)


def run_as_kernels(
    edge: EdgeProgramManager, samples: Sequence[Sample], kernels: Kernels
) -> list[Sample]:
    """What a program without delegates gives for each sample, in logical order."""
    module = edge.exported_program().module(check_guards=False)
    interpreter = _Interpreter(module, kernels)
    with torch.no_grad():
        return [tuple(pytree.tree_leaves(interpreter.run(*channels_last(s)))) for s in samples]


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(self, module: torch.fx.GraphModule, kernels: Kernels) -> None:
        super().__init__(module)
        self._kernels = kernels

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        python = super().call_function(target, args, kwargs)
        return self._kernels(target, args, kwargs, python)


def _name(target: Any) -> str:
    """ "cortex_m::quantized_avg_pool2d", of an operator of the edge dialect or of torch."""
    schema = getattr(target, "_schema", None)
    return "" if schema is None else str(schema.name)


def _by_name(target: Any, args: Sequence[Any]) -> dict[str, Any]:
    names = (argument.name for argument in target._schema.arguments)
    return dict(zip(names, args, strict=False))


def _quantize_fused(
    input: torch.Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """The product is not rounded before it is rounded to an integer: a float32 product is exact
    in float64."""
    x = input
    inverse = torch.tensor(1.0, dtype=torch.float32) / torch.tensor(scale, dtype=torch.float32)
    flat = x.permute(x.dim_order()).contiguous().flatten()
    lanes = 16 if dtype == torch.int8 else 8
    fused = torch.round(flat.double() * inverse.double())
    plain = torch.round(flat * inverse).double()  # the rest of a row goes one by one
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
    """The integer sum of a window over the number of its elements, half away from zero."""
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


def _pair(values: Sequence[int]) -> list[int]:
    return [values[0], values[-1]]


# Compile targets whose CPU has Helium (MVE): an Ethos-U's is a Cortex-M55 or M85.
_HELIUM = ("cortex-m55", "cortex-m85", "ethos-u")
DEFINITIONS = (
    Definition(
        NamedDifference(
            "quantize-fused",
            "cortex_m::quantize_per_tensor",
            "with Helium the product with the inverse scale is not rounded to float32 before it "
            "is rounded to an integer (vfmaq); Python's definition rounds twice",
        ),
        _quantize_fused,
    ),
    Definition(
        NamedDifference(
            "avg-pool-half-away",
            "cortex_m::quantized_avg_pool2d",
            "CMSIS-NN divides the integer sum of a window and rounds half away from zero; "
            "Python's definition averages floats and rounds half to even",
        ),
        _avg_pool_integer,
    ),
)
_BY_OPERATOR = {d.difference.operator: d for d in DEFINITIONS}
