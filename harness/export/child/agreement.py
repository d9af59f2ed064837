"""Measures how far the oracles of a model differ: output by output, operator by operator.

Over a whole program, the difference of another oracle to the expected outputs is only recorded. The
quantised eager model and the TOSA reference model must also agree operator by operator.

Over a whole network the two drift apart: where a sum lies half way between two values, float and
integer arithmetic round it differently (1 LSB in 30,000 elements of a convolution), and 27
layers of an untrained MobileNet make 20 LSB of that. So each operator of a delegate is computed
eagerly from the values that its inputs have *in TOSA*, and must agree within ``BOUND_LSB``.

The two name their values differently and may lay them out differently; a value's partner is the
most similar one of its type and size, in any order of its dimensions. One without a partner within
the bound (TOSA may have fused it away) is passed on as it is; the delegate's outputs are always
compared, and an operator is blamed only if all values that it reads had partners.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import torch
from executorch.exir.lowered_backend_module import LoweredBackendModule

from harness.core.errors import ExportError
from harness.export.child.expected_outputs import DelegateCall, as_logical
from harness.export.child.samples import Sample
from harness.export.child.tosa_graph import Array, computed, read_graph, run_graph, with_outputs
from harness.export.program import OracleAgreement, TensorSpec, WorstDifference

BOUND_LSB = 2  # the catalogue's worst is 1; tables and reciprocals may give one more
_QUANTISE = "quantize_per_tensor"


@dataclass(frozen=True)
class CrossCheck:
    """The outputs by another oracle."""

    name: str
    outputs: list[Sample]


def agreements(
    outputs: Sequence[TensorSpec], expected: Sequence[Sample], cross_checks: Sequence[CrossCheck]
) -> tuple[OracleAgreement, ...]:
    """The worst element of each output, over all input sets, for every check."""
    return tuple(
        OracleAgreement(
            check.name,
            tuple(
                _worst(spec, [s[n] for s in expected], [s[n] for s in check.outputs])
                for n, spec in enumerate(outputs)
            ),
        )
        for check in cross_checks
    )


def _worst(
    spec: TensorSpec, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]
) -> WorstDifference:
    unit = spec.scale or 1.0
    worst = WorstDifference(0.0, 0, (0,) * len(spec.shape))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        difference = np.nan_to_num((a.double() - b.double()).abs().numpy() / unit, nan=np.inf)
        element = _worst_element(difference)
        if difference[element] > worst.lsb:
            worst = WorstDifference(round(float(difference[element]), 3), number, element)
    return worst


def check_operators(
    lowered: LoweredBackendModule, tosa: bytes, calls: Sequence[DelegateCall]
) -> None:
    """Raises ExportError for an operator that differs by more than the bound in a call."""
    tensors = [t for t in computed(read_graph(tosa)) if t.dtype in ("int8", "int16")]
    instrumented = with_outputs(tosa, [t.name for t in tensors])
    for number, call in enumerate(calls):
        eager = _Eager(lowered, run_graph(instrumented, call.inputs))
        outputs = eager.outputs(call.inputs)
        for output, expected in zip(outputs, call.outputs, strict=True):
            difference = _absolute_difference(output, expected)
            if difference.max(initial=0) > BOUND_LSB:
                raise disagreement(call.delegate, number, eager.unmatched, difference)


def disagreement(
    delegate: int, number: int, operators: Sequence[str], difference: Array
) -> ExportError:
    """The error for an output of input set ``number``. ``operators``: those before the output, as
    ExecuTorch calls them, whose results have no partner in TOSA: one alone is blamed."""
    lsb, element = int(difference.max()), _worst_element(difference)
    at, hint = "", "ExecuTorch lowers this operator to something else than it means"
    if len(operators) == 1:
        at = f" at {operators[0]}"
    elif operators:
        hint = (
            f"which operator differs is not known: from {operators[0]} on none can be paired "
            "with a value in TOSA"
        )
    return ExportError(
        f"the TOSA reference model and the quantised eager model differ by {lsb} LSB (more than "
        f"{BOUND_LSB}) in an output of delegate {delegate}{at}, element {list(element)}, for "
        f"input set {number}",
        hint=hint,
        delegate=delegate,
        operators=tuple(operators),
        element=element,
        set=number,
        lsb=lsb,
        bound_lsb=BOUND_LSB,
    )


class _Eager(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs the lowered graph, and feeds each operator the values that TOSA computed before it.
    ``unmatched``: the operators without a match in TOSA since the last one with a match."""

    def __init__(self, lowered: LoweredBackendModule, reference: Sequence[Array]) -> None:
        program = lowered.original_module
        super().__init__(program.module(check_guards=False))
        fakes = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
        self._inputs = [fakes[name] for name in program.graph_signature.user_inputs]
        self._reference = [TosaValue.of(each) for each in reference]
        self.unmatched: tuple[str, ...] = ()

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        tensors = [as_logical(v, like) for v, like in zip(inputs, self._inputs, strict=True)]
        with torch.no_grad():
            results = self.run(*tensors)
        return [t.permute(t.dim_order()).contiguous().numpy() for t in results]

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        name = str(n.target)
        if n.op != "call_function" or _QUANTISE not in name or f"de{_QUANTISE}" in name:
            return result
        pairs = list(matches(result.contiguous().numpy(), self._reference))
        if not pairs:
            self.unmatched += (n.args[0].name,)
            return result
        _, partner = min(pairs, key=lambda pair: int(pair[0].max(initial=0)))
        self.unmatched = ()
        tosa_value = torch.from_numpy(np.ascontiguousarray(partner))
        return torch.empty_like(result).copy_(tosa_value)


@dataclass(frozen=True)
class TosaValue:
    """A value in TOSA. ``ordered``: its elements sorted, in a type wide enough to subtract."""

    value: Array
    ordered: Array

    @classmethod
    def of(cls, value: Array) -> TosaValue:
        return cls(value, np.sort(value, axis=None).astype(np.int64))


def matches(value: Array, references: Sequence[TosaValue]) -> Iterator[tuple[Array, Array]]:
    """Differences within the bound, and the reference laid out like the value, in each order of its
    dimensions. No order helps where the sorted elements differ by more."""
    ordered = TosaValue.of(value).ordered
    for reference in references:
        candidate = reference.value
        if candidate.dtype != value.dtype or candidate.size != value.size:
            continue
        if np.abs(ordered - reference.ordered).max(initial=0) > BOUND_LSB:
            continue
        for layout in permutations(range(value.ndim)):
            back = tuple(np.argsort(layout).tolist())
            partner = candidate.reshape([value.shape[d] for d in layout]).transpose(back)
            difference = _absolute_difference(value, partner)
            if difference.max(initial=0) <= BOUND_LSB:
                yield difference, partner


def _absolute_difference(a: Array, b: Array) -> Array:
    difference: Array = np.abs(a.astype(np.int64) - b.reshape(a.shape).astype(np.int64))
    return difference


def _worst_element(difference: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape))
