"""Computes the expected outputs of a lowered program, and lays them out for the runner.

For a Cortex-M: ExecuTorch's ``cortex_m`` operators. The program is run eagerly, so each operator
is the reference implementation that ``executorch/backends/cortex_m/ops/operators.py`` registers
for it, but where its C++ kernel has a definition of its own and that is followed (``by_design``).

For an Ethos-U: the TOSA reference model. Each delegate is computed by running exactly the TOSA
graph that Vela compiled, and what stays on the CPU as the operators of a Cortex-M. How
ExecuTorch presents tensors to the model is taken from
``executorch/backends/arm/test/runner_utils.py`` 1.5.1: in their physical order.

For a CPU under an operating system: the runtime of ExecuTorch's wheel on this machine: its
portable, optimised and quantised kernels, and XNNPACK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from executorch.exir import EdgeProgramManager, memory
from executorch.exir.dialects._ops import ops
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.extension.pybindings.portable_lib import (
    _load_for_executorch_from_buffer,  # the public ``runtime`` module takes files alone
)
from torch._higher_order_ops import executorch_call_delegate
from torch.utils import _pytree as pytree

from harness.core.errors import ExportError
from harness.export.child.by_design import Kernels, undilated
from harness.export.child.partition import sources_of
from harness.export.child.program_values import ProgramValue, tensor_name
from harness.export.child.samples import Sample
from harness.export.child.tosa_graph import Array, computed, read_graph, run_graph, with_outputs
from harness.export.graph_values import Row, row_of
from harness.export.program import TensorSpec

_MAX_POOLS = (
    torch.ops.aten.max_pool2d_with_indices.default,
    ops.edge.aten.max_pool2d_with_indices.default,
)


def method_bytes(tensor: torch.Tensor, spec: TensorSpec) -> bytes:
    """Return a tensor's values in the memory order that the program's metadata prescribes."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tuple(tensor.shape) != spec.shape or dtype != spec.dtype:
        raise ExportError(
            f"the oracle's '{spec.name}' is {dtype}{list(tensor.shape)}, the program's is "
            f"{spec.dtype}{list(spec.shape)}"
        )
    logical = tensor.detach().contiguous().numpy()
    return np.ascontiguousarray(logical.transpose(spec.dim_order)).tobytes()


@dataclass(frozen=True)
class DelegateCall:
    """One call of a delegate: its number in the program, its tensors in physical order."""

    delegate: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass(frozen=True)
class ProgramRun:
    """The program's outputs for one sample, in logical order, and the calls of its delegates.

    ``values``: a row for each result of an operator; ``computed``: the integers that it computes,
    those of its delegates included."""

    outputs: Sample
    calls: tuple[DelegateCall, ...]
    values: frozenset[Row] = frozenset()
    computed: tuple[ProgramValue, ...] = ()


def delegates(edge: EdgeProgramManager) -> tuple[LoweredBackendModule, ...]:
    """Return the delegates in the order of the graph, which is that of the serialised program."""
    module = edge.exported_program().graph_module
    nodes = [n for n in module.graph.nodes if n.target is executorch_call_delegate]
    return tuple(getattr(module, n.args[0].target) for n in nodes)


def run_program(
    edge: EdgeProgramManager,
    samples: Sequence[Sample],
    kernels: Kernels,
    graphs: Mapping[bytes, bytes] | None = None,
    lowered_from: torch.fx.GraphModule | None = None,
) -> list[ProgramRun]:
    """Run the program with ``kernels`` on the CPU.

    ``graphs``: each delegate's TOSA graph, by blob; ``lowered_from``: the quantised model, whose
    nodes the values are then traced back to."""
    module = edge.exported_program().module(check_guards=False)
    sources = {} if lowered_from is None else sources_of(module.graph, lowered_from.graph)
    tosa = {blob: _Instrumented.of(graph) for blob, graph in (graphs or {}).items()}
    return [_Interpreter(module, tosa, kernels, sources).run_sample(each) for each in samples]


@dataclass(frozen=True)
class _Instrumented:
    """A TOSA graph that gives its 8- and 16-bit values as well, after its own outputs.

    Its constants are among them: those of a batch norm are values of the quantised model."""

    tosa: bytes
    names: tuple[str, ...]
    outputs: int
    varying: frozenset[str]  # what is computed from an input

    @classmethod
    def of(cls, tosa: bytes) -> _Instrumented:
        graph = read_graph(tosa)
        own = [tensor.name for tensor in graph.outputs]
        every = [graph.tensors[n] for o in graph.operators for n in o.outputs if n in graph.tensors]
        inner = [t.name for t in every if t.dtype in ("int8", "int16")]
        names = [*own, *(name for name in inner if name not in own)]
        varying = frozenset(tensor.name for tensor in computed(graph))
        return cls(with_outputs(tosa, names), tuple(names), len(own), varying)


def run_eagerly(module: torch.fx.GraphModule, samples: Sequence[Sample]) -> list[Sample]:
    with torch.no_grad():
        return [tuple(pytree.tree_leaves(module(*sample))) for sample in samples]


class _Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
    def __init__(
        self,
        module: torch.fx.GraphModule,
        graphs: Mapping[bytes, _Instrumented],
        kernels: Kernels,
        sources: Mapping[str, str],
    ) -> None:
        super().__init__(module)
        self._graphs = graphs
        self._kernels = kernels
        self._sources = sources
        self._computed: list[ProgramValue] = []
        self._calls: list[DelegateCall] = []
        self._values: set[Row] = set()
        self._tensors: dict[torch.fx.Node, str] = {}  # what a getitem takes of a delegate

    def run_sample(self, sample: Sample) -> ProgramRun:
        with torch.no_grad():
            outputs = tuple(pytree.tree_leaves(self.run(*sample)))
        values = frozenset(self._values)
        return ProgramRun(outputs, tuple(self._calls), values, tuple(self._computed))

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.target is executorch_call_delegate:
            call = self._calls[-1].delegate
            names = self._graphs[bytes(self.fetch_attr(n.args[0].target).processed_bytes)].names
            self._tensors |= {user: tensor_name(call, names[user.args[1]]) for user in n.users}
        # A kernel's scratch buffer is uninitialised memory.
        if n.op == "call_function" and n.target is not memory.alloc:
            leaves = pytree.tree_leaves(result)
            arrays = [t.contiguous().numpy() for t in leaves if isinstance(t, torch.Tensor)]
            self._values |= {row_of(array) for array in arrays}
            source = self._sources.get(n.name, "")
            name = self._tensors.get(n, "")
            self._computed += [ProgramValue(a, source, name) for a in arrays if a.dtype.kind == "i"]
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is not executorch_call_delegate:
            if target in _MAX_POOLS:
                return _max_pool(*args)
            result = super().call_function(target, undilated(target, args), kwargs)
            return self._kernels(target, args, kwargs, result)
        lowered, *tensors = args
        inputs = tuple(t.permute(t.dim_order()).contiguous().numpy() for t in tensors)
        graph, call = self._graphs[bytes(lowered.processed_bytes)], len(self._calls)
        values = run_graph(graph.tosa, inputs)
        outputs, inner = values[: graph.outputs], values[graph.outputs :]
        self._computed += [
            ProgramValue(value, name=tensor_name(call, name), is_constant=name not in graph.varying)
            for value, name in zip(inner, graph.names[graph.outputs :], strict=True)
        ]
        self._calls.append(DelegateCall(call, inputs, outputs))
        (output_node,) = (n for n in lowered.original_module.graph.nodes if n.op == "output")
        results = [n.meta["val"] for n in output_node.args[0]]
        return [as_logical(v, like) for v, like in zip(outputs, results, strict=True)]


def _max_pool(x: torch.Tensor, *window: Any) -> tuple[torch.Tensor, ...]:
    """Pool a contiguous copy.

    Torch's kernel for channels-last refuses int8 images of more than 127 elements
    (``cpu_max_pool_channels_last``: an index has to fit the elements' type)."""
    order = x.dim_order()
    plain = x.clone(memory_format=torch.contiguous_format)
    results = torch.ops.aten.max_pool2d_with_indices.default(plain, *window)
    back = tuple(np.argsort(order).tolist())
    return tuple(t.permute(order).contiguous().permute(back) for t in results)


def as_logical(array: Array, like: torch.Tensor) -> torch.Tensor:
    """``like``: a fake tensor with the shape, type and strides of the result."""
    order = like.dim_order()
    physical = torch.from_numpy(array.reshape([like.shape[d] for d in order])).to(like.dtype)
    return physical.permute(tuple(np.argsort(order).tolist()))


def run_with_runtime(program: bytes, samples: Sequence[Sample]) -> list[Sample]:
    """Return the outputs of the method ``forward``. Raises RuntimeError, as the runtime does."""
    loaded = _load_for_executorch_from_buffer(program)  # it reads the buffer in place
    results = []
    for sample in samples:
        outputs = loaded.run_method("forward", tuple(sample))
        results.append(tuple(torch.as_tensor(each).clone() for each in outputs))
    return results
