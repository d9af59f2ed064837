"""Programs of many cortex_m operators at once, with the definition's results for each.

An operator call becomes one output of the program; its activations are inputs and everything
else is constant, as in a lowered model. Scratch tensors are planned as the exporter plans them
(executorch/backends/cortex_m/passes/aten_to_cortex_m_pass.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import executorch.backends.cortex_m.passes  # noqa: F401  registers torch.ops.cortex_m
import numpy as np
import torch
from executorch.backends.cortex_m.library import cmsis_nn
from executorch.backends.cortex_m.passes.scratch_buffer_sizes import required_cmsis_nn_buffer_sizes
from executorch.exir import EdgeCompileConfig, memory, to_edge
from executorch.exir._serialize._program import deserialize_pte_binary


@dataclass(frozen=True)
class Activation:
    """A tensor argument that the program receives as an input."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class Constant:
    """A tensor argument stored in the program."""

    tensor: torch.Tensor


class Scratch:
    """The scratch argument; its size is the planner's business."""


@dataclass(frozen=True)
class Case:
    """One operator call: what is called, with what, and a name for messages."""

    name: str
    operator: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class KernelProgram:
    """A program and, in memory order, the bytes that go in and must come out."""

    pte: bytes
    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]
    names: tuple[str, ...]


def resolve(operator: str) -> Any:
    """The callable of "namespace.name"."""
    namespace, name = operator.split(".")
    return getattr(getattr(torch.ops, namespace), name)


class Calls(torch.nn.Module):
    """Runs every case on its own inputs and returns all results."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = cases
        self.register_buffer("no_scratch", torch.zeros(0, dtype=torch.uint8))
        for i, case in enumerate(cases):
            for j, argument in enumerate(case.arguments):
                if isinstance(argument, Constant):
                    self.register_buffer(f"c{i}_{j}", argument.tensor)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        feed = iter(inputs)
        return tuple(self._call(i, case, feed) for i, case in enumerate(self.cases))

    def _call(self, i: int, case: Case, feed: Any) -> torch.Tensor:
        values = []
        for j, argument in enumerate(case.arguments):
            if isinstance(argument, Activation):
                values.append(next(feed))
            elif isinstance(argument, Constant):
                values.append(getattr(self, f"c{i}_{j}"))
            elif isinstance(argument, Scratch):
                values.append(self.no_scratch)
            else:
                values.append(argument)
        result: torch.Tensor = resolve(case.operator)(*values)
        return result


def plan_scratch(graph: torch.fx.Graph, backend: Any) -> None:
    """Replaces each scratch argument by an allocation of the size the backend asks for."""
    for node in list(graph.nodes):
        is_call = node.op == "call_function"
        sizes = required_cmsis_nn_buffer_sizes(node, backend) if is_call else None
        if sizes is None:
            continue
        (size,) = sizes
        with graph.inserting_before(node):
            alloc = graph.call_function(memory.alloc, (((size,), torch.uint8),))
        alloc.meta["val"] = torch.empty((size,), dtype=torch.uint8, device="meta")
        node.args = (*node.args[:-1], alloc)


def spread_taps(weight: torch.Tensor, dilation: Sequence[int]) -> torch.Tensor:
    """Weights with zeros between the taps: what dilation means (dims 1 and 2 are the kernel)."""
    outer, height, width, inner = weight.shape
    spread = torch.zeros(
        (outer, dilation[0] * (height - 1) + 1, dilation[1] * (width - 1) + 1, inner),
        dtype=weight.dtype,
    )
    spread[:, :: dilation[0], :: dilation[1], :] = weight
    return spread


def define(case: Case) -> torch.Tensor:
    """The definition's result. Torch has no dilated integer convolution on the CPU, so there
    the taps are spread instead."""
    values = [a.tensor if isinstance(a, Activation | Constant) else a for a in case.arguments]
    if isinstance(values[-1], Scratch):
        values[-1] = torch.zeros(0, dtype=torch.uint8)
    if "conv2d" in case.operator:
        values[1], values[5] = spread_taps(values[1], values[5]), [1, 1]
    result: torch.Tensor = resolve(case.operator)(*values)
    return result


def memory_bytes(tensor: torch.Tensor, dim_order: Sequence[int]) -> bytes:
    """The tensor's elements in the memory order that `dim_order` names."""
    ordered = tensor.permute(tuple(dim_order)) if tensor.dim() else tensor
    return np.ascontiguousarray(ordered.detach().numpy()).tobytes()


def output_orders(pte: bytes) -> list[list[int]]:
    """Dim order of every output of the program."""
    parsed = deserialize_pte_binary(pte)
    plan = getattr(parsed, "program", parsed).execution_plan[0]
    return [list(plan.values[i].val.dim_order) for i in plan.outputs]


def build(cases: Sequence[Case], backend: Any = None) -> KernelProgram:
    """Exports all cases as one program, planned for `backend` (default: MVE)."""
    activations = [a.tensor for c in cases for a in c.arguments if isinstance(a, Activation)]
    module = Calls(cases).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(module, tuple(activations), strict=False)
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        graph = edge.exported_program().graph
        plan_scratch(graph, backend or cmsis_nn.Backend.MVE)
        graph.lint()
        pte = bytes(edge.to_executorch().buffer)
    results = [define(case) for case in cases]
    orders = output_orders(pte)
    return KernelProgram(
        pte=pte,
        inputs=tuple(memory_bytes(t, t.dim_order()) for t in activations),
        expected=tuple(memory_bytes(t, o) for t, o in zip(results, orders, strict=True)),
        names=tuple(c.name for c in cases),
    )
