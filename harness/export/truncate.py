"""Names the operator of a delegate that the NPU computes otherwise than TOSA means it.

The delegate's TOSA graph is compiled again so that more of what it computes can be seen: once
with every quantised value as an output, which keeps a sum and its rescaling together but may
undo what Vela does across operators; if all is right then, each value as the only output, up to
the first wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import ExportError
from harness.export import quiet
from harness.export.npu_options import NpuOptions
from harness.export.tosa_graph import (
    Array,
    Operator,
    TosaTensor,
    computed,
    read_graph,
    run_graph,
    with_outputs,
)
from harness.export.vela import compile_graph

Npu = Callable[[bytes, Sequence[bytes]], list[bytes]]  # blob, inputs -> outputs


@dataclass(frozen=True)
class WrongValue:
    """The first tensor with a wrong element. ``operator``: what computed it, as TOSA calls it."""

    operator: str
    tensor: str
    element: tuple[int, ...]
    expected: int
    actual: int


def first_wrong_value(
    tosa: bytes, options: NpuOptions, inputs: Sequence[Array], npu: Npu
) -> WrongValue | None:
    """None when the fault disappears with every other set of outputs."""
    graph = read_graph(tosa)
    seen = [t for t in computed(graph) if t.dtype in ("int8", "int16", "bool")]
    names = {t.name for t in seen}
    seen += [t for t in graph.outputs if t.name not in names and t.dtype]
    with quiet.captured():
        reference = run_graph(with_outputs(tosa, [t.name for t in seen]), inputs)
        together = [list(range(len(seen)))]
        for group in (*together, *([index] for index in range(len(seen)))):
            outputs = _outputs(with_outputs(tosa, [seen[i].name for i in group]), options, inputs,
                               npu)  # fmt: skip
            for index, raw in zip(group, outputs, strict=False):
                wrong = _compare(seen[index], reference[index], raw)
                if wrong is not None:
                    place, expected, actual = wrong
                    operator = _named(graph.producer(seen[index].name), graph.operators)
                    return WrongValue(operator, seen[index].name, place, expected, actual)
    return None


def _outputs(
    tosa: bytes, options: NpuOptions, inputs: Sequence[Array], npu: Npu
) -> Sequence[bytes]:
    """Nothing when Vela refuses these outputs."""
    try:
        blob = compile_graph(tosa, options)
    except ExportError:
        return ()
    return npu(blob, [value.tobytes() for value in inputs])


def _compare(
    tensor: TosaTensor, expected: Array, raw: bytes
) -> tuple[tuple[int, ...], int, int] | None:
    if len(raw) != expected.nbytes:
        raise ExportError(f"'{tensor.name}' has {len(raw)} bytes, not {expected.nbytes}")
    actual = np.frombuffer(raw, expected.dtype).reshape(expected.shape)
    different = np.argwhere(actual != expected)
    if not len(different):
        return None
    place = tuple(int(i) for i in different[0])
    return place, int(expected[place]), int(actual[place])


def _named(operator: Operator, operators: Sequence[Operator]) -> str:
    """A rescaling belongs to the sum that it rescales."""
    if operator.name in ("RESCALE", "CLAMP"):
        for other in operators:
            if operator.inputs[0] in other.outputs and other.name not in ("CONST", "RESCALE"):
                return f"{other.name} and {operator.name}"
    return operator.name
