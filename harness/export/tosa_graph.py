"""Reads TOSA graphs, and asks them for other outputs. Needs no torch.

The tables are those of ``tosa.fbs`` in tosa-tools 2026.5.0, which carries its generated reader.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tosa_reference_model  # type: ignore[import-untyped]
from tosa.DType import DType  # type: ignore[import-untyped]
from tosa.Op import Op  # type: ignore[import-untyped]
from tosa.TosaBasicBlock import TosaBasicBlock  # type: ignore[import-untyped]
from tosa.TosaGraph import TosaGraph  # type: ignore[import-untyped]

from harness.errors import ExportError

Array = npt.NDArray[Any]
_OUTPUTS = 12  # of TosaBasicBlock: its fifth field, behind two fields of the virtual table
_TYPES = {
    DType.BOOL: "bool",
    DType.INT8: "int8",
    DType.INT16: "int16",
    DType.INT32: "int32",
}


@dataclass(frozen=True)
class TosaTensor:
    """``dtype`` is empty for one that numpy has no name for."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """The main block; bodies of loops and branches are parts of their operator."""

    tensors: dict[str, TosaTensor]
    operators: tuple[Operator, ...]
    inputs: tuple[TosaTensor, ...]
    outputs: tuple[TosaTensor, ...]

    def producer(self, tensor: str) -> Operator:
        return next(o for o in self.operators if tensor in o.outputs)


def read_graph(tosa: bytes) -> Graph:
    block = _block(tosa)
    names = {value: name for name, value in vars(Op).items() if isinstance(value, int)}
    found = (_tensor(block.Tensors(i)) for i in range(block.TensorsLength()))
    tensors = {tensor.name: tensor for tensor in found}
    operators = [block.Operators(i) for i in range(block.OperatorsLength())]
    return Graph(
        tensors,
        tuple(
            Operator(
                names.get(op.Op(), str(op.Op())),
                _strings(op.Inputs, op.InputsLength()),
                _strings(op.Outputs, op.OutputsLength()),
            )
            for op in operators
        ),
        tuple(tensors[n] for n in _strings(block.Inputs, block.InputsLength())),
        tuple(tensors[n] for n in _strings(block.Outputs, block.OutputsLength())),
    )


def computed(graph: Graph) -> list[TosaTensor]:
    """What the graph computes from its inputs, in the order of its operators."""
    reached = {tensor.name for tensor in graph.inputs}
    found = []
    for operator in graph.operators:
        if reached.intersection(operator.inputs):
            reached.update(operator.outputs)
            found += [graph.tensors[name] for name in operator.outputs if name in graph.tensors]
    return found


def with_outputs(tosa: bytes, names: Sequence[str]) -> bytes:
    """The same graph with these tensors as its outputs.

    A new vector of names goes behind the buffer and the block's field points to it, so that
    nothing else moves.
    """
    table = _block(tosa)._tab
    field = table.Pos + table.Offset(_OUTPUTS)
    content = bytearray(tosa.ljust(-(-len(tosa) // 8) * 8, b"\0"))
    struct.pack_into("<I", content, field, len(content) - field)
    slots = len(content) + 4
    content += struct.pack("<I", len(names)) + bytes(4 * len(names))
    for index, name in enumerate(names):
        content += bytes(-len(content) % 4)
        struct.pack_into("<I", content, slots + 4 * index, len(content) - slots - 4 * index)
        text = name.encode()
        content += struct.pack("<I", len(text)) + text + b"\0"
    return bytes(content) + bytes(-len(content) % 8)


def run_graph(tosa: bytes, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The TOSA reference model's outputs. Raises ExportError when it refuses the graph."""
    outputs, status = tosa_reference_model.run(
        tosa, list(inputs), verbosity="NONE", initialize_variable_tensor_from_numpy=True
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise ExportError(
            f"the TOSA reference model refuses the graph that Vela compiled: {status.name}"
        )
    return tuple(np.asarray(output) for output in outputs)


def _block(tosa: bytes) -> TosaBasicBlock:
    return TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)


def _tensor(table: Any) -> TosaTensor:
    shape = tuple(table.Shape(i) for i in range(table.ShapeLength()))
    return TosaTensor(table.Name().decode(), _TYPES.get(table.Type(), ""), shape)


def _strings(get: Any, count: int) -> tuple[str, ...]:
    return tuple(get(index).decode() for index in range(count))
