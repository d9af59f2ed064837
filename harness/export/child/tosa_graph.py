"""Reads TOSA graphs, cuts parts out of them, gives them other outputs, runs them. Needs no torch.

The tables are those of ``tosa.fbs``; its generated reader comes with tosa-tools 2026.5.0.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tosa_reference_model  # type: ignore[import-untyped]
from tosa.Attribute import Attribute  # type: ignore[import-untyped]
from tosa.DType import DType  # type: ignore[import-untyped]
from tosa.Op import Op  # type: ignore[import-untyped]
from tosa.TosaBasicBlock import TosaBasicBlock  # type: ignore[import-untyped]
from tosa.TosaGraph import TosaGraph  # type: ignore[import-untyped]

from harness.core.errors import ExportError
from harness.export.program import TensorSpec

Array = npt.NDArray[Any]
# Fields of TosaBasicBlock by their offset in the vtable, after its own two sizes.
_OPERATORS, _TENSORS, _INPUTS, _OUTPUTS, _SHAPES = 6, 8, 10, 12, 14
_FEW = 64  # bytes of a constant whose values are read
CONSTANTS = ("CONST", "CONST_SHAPE")  # operators that give a constant
_TYPES = {
    DType.BOOL: "bool",
    DType.INT8: "int8",
    DType.INT16: "int16",
    DType.INT32: "int32",
}


@dataclass(frozen=True)
class Operator:
    """``padding``: of a window, at each side."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    padding: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """The main block; bodies of loops and branches are parts of their operator.

    ``numbers``: the values of short integer constants, such as zero points.
    """

    tensors: dict[str, TensorSpec]
    numbers: dict[str, tuple[int, ...]]
    operators: tuple[Operator, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def producer(self, tensor: str) -> Operator:
        return next(o for o in self.operators if tensor in o.outputs)


def read_graph(tosa: bytes) -> Graph:
    block = _block(tosa)
    names = {value: name for name, value in vars(Op).items() if isinstance(value, int)}
    tables = [block.Tensors(i) for i in range(block.TensorsLength())]
    tensors = {tensor.name: tensor for tensor in map(_tensor, tables)}
    operators = [block.Operators(i) for i in range(block.OperatorsLength())]
    return Graph(
        tensors,
        {t.Name().decode(): _numbers(t) for t in tables if 0 < t.DataLength() <= _FEW},
        tuple(
            Operator(
                names.get(op.Op(), str(op.Op())),
                _strings(op.Inputs, op.InputsLength()),
                _strings(op.Outputs, op.OutputsLength()),
                _padding(op),
            )
            for op in operators
        ),
        tuple(tensors[n] for n in _strings(block.Inputs, block.InputsLength())),
        tuple(tensors[n] for n in _strings(block.Outputs, block.OutputsLength())),
    )


def computed(graph: Graph) -> list[TensorSpec]:
    """Return the tensors that the graph computes from its inputs, in the order of its operators."""
    reached = {tensor.name for tensor in graph.inputs}
    tensors = []
    for operator in graph.operators:
        if reached.intersection(operator.inputs):
            reached.update(operator.outputs)
            tensors += [graph.tensors[name] for name in operator.outputs if name in graph.tensors]
    return tensors


def nearest(graph: Graph, labels: Mapping[str, str], tensor: str) -> str:
    """Return the label of a tensor; of one without, that of the nearest labelled one; or "".

    That is the first labelled one that is computed from it, else the last that it is computed from.
    """
    later: set[str] = {tensor}
    if tensor in labels:
        return labels[tensor]
    for operator in graph.operators:
        if later.intersection(operator.inputs):
            later.update(operator.outputs)
            if found := [labels[name] for name in operator.outputs if name in labels]:
                return found[0]
    earlier: set[str] = {tensor}
    for operator in graph.operators[::-1]:
        if earlier.intersection(operator.outputs):
            earlier.update(operator.inputs)
            if found := [labels[name] for name in operator.inputs if name in labels]:
                return found[0]
    return ""


def with_outputs(tosa: bytes, names: Sequence[str]) -> bytes:
    """Return the graph with these tensors as its outputs."""
    content = bytearray(tosa)
    _replace_names(content, _OUTPUTS, names)
    return bytes(content)


def part(
    tosa: bytes, operators: Collection[int], inputs: Sequence[str], outputs: Sequence[str]
) -> bytes:
    """Return some operators of a graph, by index, as a graph with these inputs and outputs.

    No table moves: offsets in a FlatBuffer point forward, so the entries of a vector may move to
    its front. The omitted tables stay in the file, unreferenced."""
    block = _block(tosa)
    chosen = [block.Operators(i) for i in sorted(operators)]
    used = set(inputs) | set(outputs)
    for op in chosen:
        used.update(_strings(op.Inputs, op.InputsLength()))
        used.update(_strings(op.Outputs, op.OutputsLength()))
    content = bytearray(tosa)
    _shorten(content, _OPERATORS, sorted(operators))
    tensors = range(block.TensorsLength())
    _shorten(content, _TENSORS, [i for i in tensors if block.Tensors(i).Name().decode() in used])
    shapes = range(block.ShapesLength())
    _shorten(content, _SHAPES, [i for i in shapes if block.Shapes(i).Name().decode() in used])
    _replace_names(content, _INPUTS, inputs)
    _replace_names(content, _OUTPUTS, outputs)
    return bytes(content)


def _replace_names(content: bytearray, field: int, names: Sequence[str]) -> None:
    """Append a vector of names to the buffer, and point the block's field to it."""
    table = _block(content)._tab
    position = table.Pos + table.Offset(field)
    content += bytes(-len(content) % 8)
    struct.pack_into("<I", content, position, len(content) - position)
    slots = len(content) + 4
    content += struct.pack("<I", len(names)) + bytes(4 * len(names))
    for index, name in enumerate(names):
        content += bytes(-len(content) % 4)
        struct.pack_into("<I", content, slots + 4 * index, len(content) - slots - 4 * index)
        text = name.encode()
        content += struct.pack("<I", len(text)) + text + b"\0"
    content += bytes(-len(content) % 8)


def _shorten(content: bytearray, field: int, entries: Sequence[int]) -> None:
    """Shortens one of the block's vectors of tables to these entries."""
    table = _block(content)._tab
    offset = table.Offset(field)
    if not offset:
        return
    slots = table.Vector(offset)
    targets = [
        slot + struct.unpack_from("<I", content, slot)[0]
        for slot in (slots + 4 * i for i in entries)
    ]
    struct.pack_into("<I", content, slots - 4, len(targets))
    for index, target in enumerate(targets):
        struct.pack_into("<I", content, slots + 4 * index, target - slots - 4 * index)


def run_graph(tosa: bytes, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Run the TOSA reference model. Raises ExportError when it refuses the graph."""
    outputs, status = tosa_reference_model.run(
        tosa, list(inputs), verbosity="NONE", initialize_variable_tensor_from_numpy=True
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise ExportError(
            f"the TOSA reference model refuses the graph that Vela compiled: {status.name}"
        )
    return tuple(np.asarray(output) for output in outputs)


def _block(tosa: bytes | bytearray) -> TosaBasicBlock:
    return TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)


def _tensor(table: Any) -> TensorSpec:
    """``dtype`` is empty for a type that numpy lacks."""
    name = table.Name().decode()
    shape = tuple(table.Shape(i) for i in range(table.ShapeLength()))
    return TensorSpec(name, _TYPES.get(table.Type(), ""), shape, tuple(range(len(shape))))


def _numbers(table: Any) -> tuple[int, ...]:
    kind = _TYPES.get(table.Type(), "")
    values = np.frombuffer(table.DataAsNumpy().tobytes(), kind or np.uint8)
    return tuple(int(v) for v in values)


def _padding(operator: Any) -> tuple[int, ...]:
    names = {value: name for name, value in vars(Attribute).items() if isinstance(value, int)}
    kind = names.get(operator.AttributeType(), "NONE")
    if kind == "NONE":
        return ()
    union, table = operator.Attribute(), getattr(importlib.import_module(f"tosa.{kind}"), kind)()
    if union is None or not hasattr(table, "PadLength"):
        return ()
    table.Init(union.Bytes, union.Pos)
    return tuple(table.Pad(index) for index in range(table.PadLength()))


def _strings(get: Any, count: int) -> tuple[str, ...]:
    return tuple(get(index).decode() for index in range(count))
