"""Programs of many cortex_m operators at once, with the definition's results for each.

An operator call becomes one output of the program; its activations are inputs and everything
else is constant, as in a lowered model. Scratch tensors are planned as the exporter plans them
(executorch/backends/cortex_m/passes/aten_to_cortex_m_pass.py).
"""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.firmware.source import Arithmetic
from tests.late import Late

torch = Late("torch")
exir = Late("executorch.exir")
scratch_buffer_sizes = Late("executorch.backends.cortex_m.passes.scratch_buffer_sizes")
dim_orders = Late("executorch.exir.passes.memory_format_ops_pass")
edge_operators = Late("executorch.exir.passes.replace_aten_with_edge_pass")
building = Late("executorch.backends.test.program_builder")
signature = Late("torch.export.graph_signature")
serialising = Late("executorch.exir._serialize._program")
by_design = Late("harness.export.child.by_design")
cmsis_nn = Late("executorch.backends.cortex_m.library.cmsis_nn")


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
    """One operator call: what is called, with what, and a name for messages. Results of float32
    may differ by the tolerance, relative and absolute; the rest agrees in every byte."""

    name: str
    operator: str
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 0.0
    output: int = 0  # which one, of several


@dataclass(frozen=True)
class KernelProgram:
    """A program and, in memory order, the bytes that go in and must come out."""

    pte: bytes
    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]
    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]  # the inputs
    tolerances: tuple[float, ...]

    def wrong(self, outputs: Sequence[bytes]) -> list[str]:
        """The calls whose results are not as expected, and by how many bytes they differ."""
        rows = zip(self.names, outputs, self.expected, self.tolerances, strict=True)
        return [
            f"{name}: {sum(a != b for a, b in zip(got, want, strict=False))} of {len(want)} bytes"
            for name, got, want, tolerance in rows
            if got != want and not (tolerance and close(got, want, tolerance))
        ]


def close(got: bytes, want: bytes, tolerance: float) -> bool:
    """Whether two float32 results agree within the tolerance; NaN agrees with NaN."""
    if len(got) != len(want):
        return False
    values = (np.frombuffer(data, np.float32) for data in (got, want))
    return bool(np.allclose(*values, rtol=tolerance, atol=tolerance, equal_nan=True))


def resolve(operator: str) -> Any:
    """The callable of "namespace.name" or "namespace.name.overload"."""
    import executorch.backends.cortex_m.passes  # noqa: F401  registers torch.ops.cortex_m

    return functools.reduce(getattr, operator.split("."), torch.ops)


def edge_program(cases: Sequence[Case]) -> Any:
    """Calls every case on its own inputs and returns all results: what torch.export and
    exir.to_edge make of such a module, in a fraction of their time and with no operator
    decomposed."""

    class Builder(dim_orders.MemoryFormatOpsPass, building.ProgramBuilder):
        """With a dim order wherever a call asks for a memory format."""

    builder = Builder()
    constant, user_input = signature.InputKind.CONSTANT_TENSOR, signature.InputKind.USER_INPUT
    no_scratch = builder.placeholder("no_scratch", torch.zeros(0, dtype=torch.uint8), constant)
    number = itertools.count()

    def placed(argument: Any) -> Any:
        if isinstance(argument, tuple):
            return [placed(piece) for piece in argument]
        if isinstance(argument, Activation | Constant):
            kind = user_input if isinstance(argument, Activation) else constant
            return builder.placeholder(f"x{next(number)}", argument.tensor, kind)
        return no_scratch if isinstance(argument, Scratch) else argument

    results = []
    for case in cases:
        operator = edge_operators.aten_to_edge(overload_of(case))
        arguments = tuple(map(placed, case.arguments))
        result = builder.call_operator(operator, arguments, case.options, None)
        several = not isinstance(result.data, torch.Tensor)
        results.append(builder.call_getitem(result, case.output) if several else result)
    builder.output(results)
    return builder.get_program()


def overload_of(case: Case) -> Any:
    """The overload of the operator that takes the case's arguments."""
    operator = resolve(case.operator)
    if isinstance(operator, torch._ops.OpOverload):
        return operator
    values = map(plain, case.arguments)
    name = torch._C._jit_resolve_packet(operator._qualified_op_name, *values, **case.options)
    return getattr(operator, name)


def picked(result: Any, output: int) -> torch.Tensor:
    """The result, or one of several."""
    chosen: torch.Tensor = result[output] if isinstance(result, tuple | list) else result
    return chosen


def plan_scratch(graph: torch.fx.Graph, backend: Any, spare: int) -> None:
    """Replaces the last arguments by allocations of the sizes the backend asks for, and `spare`
    bytes more."""
    for node in list(graph.nodes):
        is_call = node.op == "call_function"
        sizes = (
            scratch_buffer_sizes.required_cmsis_nn_buffer_sizes(node, backend) if is_call else None
        )
        if sizes is None:
            continue
        scratch = []
        for size in sizes:
            with graph.inserting_before(node):
                alloc = graph.call_function(exir.memory.alloc, (((size + spare,), torch.uint8),))
            alloc.meta["val"] = torch.empty((size + spare,), dtype=torch.uint8, device="meta")
            scratch.append(alloc)
        node.args = (*node.args[: -len(scratch)], *scratch)


def spread_taps(weight: torch.Tensor, dilation: Sequence[int]) -> torch.Tensor:
    """Weights with zeros between the taps: what dilation means (dims 1 and 2 are the kernel)."""
    outer, height, width, inner = weight.shape
    spread = torch.zeros(
        (outer, dilation[0] * (height - 1) + 1, dilation[1] * (width - 1) + 1, inner),
        dtype=weight.dtype,
    )
    spread[:, :: dilation[0], :: dilation[1], :] = weight
    return spread


def define(case: Case, every_kernels: Sequence[Any]) -> list[torch.Tensor]:
    """The definition's result, as each set of kernels gives it. Torch has no dilated integer
    convolution on the CPU, so there the taps are spread instead; and it leaves the order of equal
    elements open, which in our sort is the one they had."""
    values = [plain(argument) for argument in case.arguments]
    if case.operator == "aten.sort":
        x, dim, descending = values
        result = torch.sort(x, dim=dim, descending=descending, stable=True)
        return [picked(result, case.output)] * len(every_kernels)
    if "quantized_conv2d" in case.operator or "depthwise" in case.operator:
        values[1], values[5] = spread_taps(values[1], values[5]), [1, 1]
    operator = resolve(case.operator)
    result = operator(*values, **case.options)
    overload = getattr(operator, "default", operator)
    return [
        picked(kernels(overload, tuple(values), case.options, result), case.output)
        for kernels in every_kernels
    ]


def plain(argument: Any) -> Any:
    """What the definition is called with."""
    if isinstance(argument, Scratch):
        return torch.zeros(0, dtype=torch.uint8)
    if isinstance(argument, tuple):
        return [None if piece is None else piece.tensor for piece in argument]
    return argument.tensor if isinstance(argument, Activation | Constant) else argument


def activations_of(case: Case) -> Iterator[torch.Tensor]:
    """The tensors a call receives as inputs, those of lists included."""
    for argument in case.arguments:
        for piece in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(piece, Activation):
                yield piece.tensor


def memory_bytes(tensor: torch.Tensor, dim_order: Sequence[int]) -> bytes:
    """The tensor's elements in the memory order that `dim_order` names."""
    ordered = tensor.permute(tuple(dim_order)) if tensor.dim() else tensor
    return np.ascontiguousarray(ordered.detach().numpy()).tobytes()


def output_orders(pte: bytes) -> list[list[int]]:
    """Dim order of every output of the program."""
    parsed = serialising.deserialize_pte_binary(pte)
    plan = getattr(parsed, "program", parsed).execution_plan[0]
    return [list(plan.values[i].val.dim_order) for i in plan.outputs]


# A core that CMSIS-NN's backend is for.
CORES = {
    "MVE": "cortex-m55",
    "DSP": "cortex-m33",
    "SCALAR": "cortex-m0plus",
}


@dataclass(frozen=True)
class Plan:
    """What a program is for: whose scratch it has, and `spare` bytes more; whose arithmetic its
    results are by."""

    backend: str = "MVE"  # by its name in cmsis_nn.Backend
    arithmetic: Arithmetic = Arithmetic.CMSIS_NN
    spare: int = 0


def build(cases: Sequence[Case], plan: Plan = Plan()) -> KernelProgram:
    """Exports all cases as one program; views are bound to their input's memory."""
    (program,) = build_each(cases, (plan,))
    return program


def build_each(
    cases: Sequence[Case], plans: Sequence[Plan], *, keep_views: bool = False
) -> list[KernelProgram]:
    """The same for several plans, exported once; views may be kept as copies."""
    activations = [tensor for case in cases for tensor in activations_of(case)]
    config = exir.ExecutorchBackendConfig(remove_view_copy=not keep_views)
    options = exir.EdgeCompileConfig(_check_ir_validity=False)
    has_scratch = any(isinstance(each, Scratch) for case in cases for each in case.arguments)
    programs: dict[tuple[str, int] | None, tuple[bytes, list[list[int]]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = exir.EdgeProgramManager(edge_program(cases), compile_config=options)
        for plan in plans:
            if _program_key(plan, has_scratch) in programs:
                continue
            planned = copy.deepcopy(edge)
            backend = getattr(cmsis_nn.Backend, plan.backend)
            plan_scratch(planned.exported_program().graph, backend, plan.spare)
            planned.exported_program().graph.lint()
            pte = bytes(planned.to_executorch(config).buffer)
            programs[_program_key(plan, has_scratch)] = pte, output_orders(pte)
    inputs = tuple(memory_bytes(t, t.dim_order()) for t in activations)
    made = []
    for plan, defined in zip(plans, results(cases, plans), strict=True):
        pte, orders = programs[_program_key(plan, has_scratch)]
        made.append(
            KernelProgram(
                pte=pte,
                inputs=inputs,
                expected=tuple(memory_bytes(t, o) for t, o in zip(defined, orders, strict=True)),
                names=tuple(c.name for c in cases),
                tensors=tuple(activations),
                tolerances=tuple(c.tolerance for c in cases),
            )
        )
    return made


def _program_key(plan: Plan, has_scratch: bool) -> tuple[str, int] | None:
    """What a program depends on: plans differ in scratch alone."""
    return (plan.backend, plan.spare) if has_scratch else None


def results(cases: Sequence[Case], plans: Sequence[Plan]) -> Iterator[tuple[torch.Tensor, ...]]:
    """As the kernels for each plan's core give them."""
    kernels = [by_design.Kernels(CORES[plan.backend], plan.arithmetic) for plan in plans]
    return zip(*(define(case, kernels) for case in cases), strict=True)
