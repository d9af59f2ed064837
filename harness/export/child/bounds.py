"""How far a lowered operator may be from the quantised one in PyTorch, in steps of its output.

PyTorch computes a quantised operator in float32 and rounds once. A program computes it in
integers. What may differ follows from the kind of the operator and from its types:

* An operator that moves or selects elements computes nothing: 0 steps. Where its output has another
  scale than an input, the elements are requantised: 1.
* Arithmetic ends in a requantisation, an integer product with a 32-bit multiplier (``RESCALE`` of
  TOSA 1.0, ``arm_nn_requantize`` of CMSIS-NN 7). Both sides are within half a step of the real
  result, so they are at most one step apart. An operator of several stages that each round has one
  step for each (``roundings`` in ``bounds.yaml``).
* A gate (``gates`` in ``bounds.yaml``) has a constant that is rounded to a step of its input. The
  error that follows at each element is computed. More than 8 steps of it, a 32nd of the range of
  int8, is not rounding: such a program is not the model.
* An accumulator of 48 bits, which products of 16-bit activations need, is rescaled with a
  multiplier of 16 bits (TOSA 1.0, ``RESCALE`` with ``scale32`` false): 2**-15 of the result more.
* A function of 16-bit elements is a table of 513 entries, between which ``TABLE`` interpolates
  (TOSA 1.0; ``backends/arm/_passes/insert_table_ops.py`` of ExecuTorch 1.5.1 fills it). Its error
  is computed: the function at every element against the interpolation of its own entries.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from harness.config.strict_yaml import read

_BETWEEN = 128  # elements from one entry of a table to the next
_MOST_OF_A_GATE = 8  # steps


@dataclass(frozen=True)
class _Kinds:
    """The lists of ``bounds.yaml``."""

    moves: frozenset[str]
    selects: frozenset[str]
    functions: frozenset[str]
    long_sums: frozenset[str]
    roundings: Mapping[str, int]
    gates: Mapping[str, float]


@cache
def _kinds() -> _Kinds:
    lists: dict[str, Any] = read(Path(__file__).with_name("bounds.yaml")).data
    roundings, gates = lists.pop("roundings"), lists.pop("gates")
    words = {name: frozenset(names) for name, names in lists.items()}
    return _Kinds(**words, roundings=roundings, gates=gates)


@dataclass(frozen=True)
class Quantiser:
    """The parameters of a quantise or dequantise node of ``quantized_decomposed``."""

    scale: float
    zero_point: int
    low: int
    high: int
    dtype: torch.dtype

    @classmethod
    def of(cls, node: Node) -> Quantiser:
        scale, zero_point, low, high, dtype = node.args[1:6]
        return cls(float(scale), int(zero_point), int(low), int(high), dtype)

    @property
    def step(self) -> tuple[float, int]:
        return self.scale, self.zero_point

    def quantise(self, value: torch.Tensor) -> torch.Tensor:
        rounded = torch.round(value.double() / self.scale) + self.zero_point
        return rounded.clamp(self.low, self.high)

    def dequantise(self, value: torch.Tensor) -> torch.Tensor:
        return (value - self.zero_point).to(torch.float32) * self.scale


@dataclass(frozen=True)
class QuantizedRegion:
    """The operators between quantised values and the one quantised ``output``.

    ``inputs``: the dequantise nodes of activations that it starts from."""

    operators: tuple[Node, ...]
    inputs: tuple[Node, ...]
    output: Node

    @property
    def names(self) -> list[str]:
        return [operator_name(node) for node in self.operators]

    @property
    def sources(self) -> list[Node]:
        """The values that it starts from."""
        return [node.all_input_nodes[0] for node in self.inputs]

    @property
    def titles(self) -> list[str]:
        """Its operators as PyTorch calls them, those that compute if there are any."""
        computing = [name for name in self.names if name not in _kinds().moves]
        return computing or [operator_name(self.main)]

    @property
    def node_names(self) -> frozenset[str]:
        return frozenset(node.name for node in (*self.operators, self.output))

    @property
    def computes(self) -> bool:
        """Whether it does anything but move elements."""
        return any(name not in _kinds().moves for name in self.names)

    @property
    def main(self) -> Node:
        """The operator that a reader would name it for: the first that computes."""
        computing = [n for n in self.operators if operator_name(n) not in _kinds().moves]
        return next(iter([*computing, *self.operators[::-1], self.output]))


def operator_name(node: Node) -> str:
    """ "conv2d", whatever the overload."""
    if name := schema_name(node.target):
        return name.rpartition("::")[2]
    return "getitem" if node.target is operator.getitem else str(node.target)


def schema_name(target: object) -> str:
    """ "aten::conv2d", of torch or the edge dialect; "" for what is not an operator."""
    schema = getattr(target, "_schema", None)
    return "" if schema is None else str(schema.name)


def bound(region: QuantizedRegion, values: Sequence[torch.Tensor]) -> torch.Tensor | int:
    """Return the bound in steps, per output element or for all, from quantised ``values``."""
    kinds, output = _kinds(), Quantiser.of(region.output)
    computing = [name for name in region.names if name not in kinds.moves | kinds.selects]
    if not computing:
        same = all(Quantiser.of(node).step == output.step for node in region.inputs)
        return 0 if same and region.inputs else 1
    steps = sum(kinds.roundings.get(name, 1) for name in computing)
    if output.dtype is torch.int8:
        gates = [kinds.gates[name] for name in computing if name in kinds.gates]
        if len(gates) == len(region.operators) == len(region.inputs) == 1:
            error = gate_error(gates[0], values[0], Quantiser.of(region.inputs[0]), output)
            return steps + error.clamp(max=_MOST_OF_A_GATE)
        return steps
    functions = [node for node in region.operators if operator_name(node) in kinds.functions]
    if len(functions) == len(computing) == len(region.inputs) == 1:
        error = table_error(functions[0], Quantiser.of(region.inputs[0]), output)
        of_each = error[values[0].to(torch.int64) + 2**15]
        return steps + (of_each if len(region.operators) == 1 else int(of_each.max()))
    if kinds.long_sums.intersection(computing):
        return steps + 1  # 2**-15 of at most 2**15
    return steps


def gate_error(
    constant: float, values: torch.Tensor, given: Quantiser, output: Quantiser
) -> torch.Tensor:
    """Return how far x * min(x + c, 2c) / 2c is off at each of the quantised ``values``.

    In whole steps of the output, if c is a zero point's shift and a limit in whole steps of the
    input."""
    c = torch.tensor(constant)
    shift = torch.round(c / given.scale) * given.scale - c
    limit = given.dequantise(given.quantise(c))
    x = given.dequantise(values.to(torch.int64))
    limited = torch.where(x > torch.minimum(limit, c), (limit - c).abs(), 0.0)
    off = x.abs() * (shift.abs() + limited) / (2 * constant)
    return torch.ceil(off / output.scale).to(torch.int64)


def table_error(node: Node, given: Quantiser, output: Quantiser) -> torch.Tensor:
    """Return how far the interpolated table is off, in whole steps, at each int16."""

    def function(codes: torch.Tensor) -> torch.Tensor:
        return output.quantise(_call(node, given.dequantise(codes)))

    elements = torch.arange(-(2**15), 2**15)
    exact = function(elements.clamp(given.low, given.high))
    # The last entry is one beyond the elements, and is computed there.
    codes = torch.arange(-(2**15), 2**15 + 1, _BETWEEN)
    entries = function(codes.clamp(given.low, max(given.high, 2**15)))
    number, rest = (elements + 2**15) // _BETWEEN, (elements % _BETWEEN).double() / _BETWEEN
    interpolated = entries[number] + (entries[number + 1] - entries[number]) * rest
    error = torch.round((interpolated - exact).abs())
    return torch.nan_to_num(error, nan=float(output.high - output.low)).to(torch.int64)


def _call(node: Node, value: torch.Tensor) -> torch.Tensor:
    target: Any = node.target
    arguments = [value, *(a for a in node.args[1:] if not isinstance(a, Node))]
    with torch.no_grad():
        result: torch.Tensor = target(*arguments, **node.kwargs)
    return result
