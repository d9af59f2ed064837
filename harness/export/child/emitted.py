"""Requires that each instruction of a program has what the graph has that it was emitted from.

The expected outputs come from the graph, and a runner follows the instructions: what the emitter
writes otherwise would look like the fault of a kernel. Checked are the operator, the numbers, the
types, shapes and places of the tensors, and the bytes of the constants, of each operator of the
method; the branches of ``torch.cond`` and the like are graphs of their own, which are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from executorch.exir import ExecutorchProgramManager, schema
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.tensor import TensorSpec, scalar_type_enum
from torch.export import ExportedProgram

from harness.export.failures import EmissionDiffers

_BOXED_LISTS = ("IntList", "TensorList", "OptionalTensorList")
# The schema's types of single values: the field, and Python's type. An Int may be of an enum.
_PLAIN: dict[str, tuple[str, Callable[[Any], object]]] = {
    "Int": ("int_val", int),
    "Bool": ("bool_val", bool),
    "Double": ("double_val", float),  # "inf" is text in the schema
    "String": ("string_val", str),
}


def require_emission(program: ExecutorchProgramManager) -> None:
    """Raise EmissionDiffers for the first instruction that differs."""
    written, exported = program.executorch_program, program.exported_program()
    (plan,) = written.execution_plan
    calls = [each.instr_args for each in chain.from_iterable(c.instructions for c in plan.chains)]
    reader = _Reader(plan.values, written.constant_buffer, _constants(exported))
    for node in exported.graph.nodes:
        number = node.meta.get("debug_handle")  # of its instruction: ``_Emitter._add_debug_handle``
        delegates = node.target is executorch_call_delegate
        if not isinstance(number, int) or not (delegates or hasattr(node.target, "_schema")):
            continue
        call: Any = calls[number] if number < len(calls) else None
        meant = "a delegate" if delegates else _name(node.target._schema)
        found = _operator(plan, call)
        if found != meant:
            raise EmissionDiffers(number, meant, "operator", meant, found)
        arguments = [*(_of_delegate(node) if delegates else _arguments(node))]
        if len(call.args) < len(arguments):  # what a kernel returns comes after them
            counts = str(len(arguments)), str(len(call.args))
            raise EmissionDiffers(number, meant, "number of arguments", *counts)
        for (name, argument), value in zip(arguments, call.args, strict=False):
            wanted, written_value = reader.meant(argument), reader.found(value)
            if wanted not in (None, written_value):
                raise EmissionDiffers(number, meant, name, wanted, written_value)


def _name(operator: Any) -> str:
    overload = getattr(operator, "overload_name", "") or getattr(operator, "overload", "")
    return f"{operator.name}.{overload}" if overload else str(operator.name)


def _operator(plan: schema.ExecutionPlan, call: Any) -> str:
    if isinstance(call, schema.KernelCall):
        return _name(plan.operators[call.op_index])
    return "a delegate" if isinstance(call, schema.DelegateCall) else type(call).__name__


def _of_delegate(node: torch.fx.Node) -> Iterator[tuple[str, Any]]:
    yield from ((f"input {number}", given) for number, given in enumerate(node.args[1:]))
    yield from ((f"output {number}", spec) for number, spec in enumerate(node.meta["spec"]))


def _arguments(node: torch.fx.Node) -> Iterator[tuple[str, Any]]:
    for number, argument in enumerate(node.target._schema.arguments):
        if argument.name in node.kwargs:
            yield argument.name, node.kwargs[argument.name]
        elif number < len(node.args) and not argument.kwarg_only:
            yield argument.name, node.args[number]
        else:
            yield argument.name, argument.default_value


def _constants(exported: ExportedProgram) -> dict[str, torch.Tensor]:
    """By the name of the placeholder."""
    signature = exported.graph_signature
    named = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    stored = {**exported.state_dict, **exported.constants}
    return {node: stored[name] for node, name in named.items() if name in stored}


class _Reader:
    """The values of a plan and what they were emitted from, both as text."""

    def __init__(
        self,
        values: list[schema.EValue],
        buffers: list[schema.Buffer],
        constants: Mapping[str, torch.Tensor],
    ) -> None:
        self._values, self._buffers, self._constants = values, buffers, constants

    def found(self, index: int) -> str:
        value: Any = self._values[index].val if index >= 0 else schema.Null()
        name = type(value).__name__
        if name in _PLAIN:
            field, of_type = _PLAIN[name]
            return repr(of_type(getattr(value, field)))
        if name in _BOXED_LISTS:
            return _listed(map(self.found, value.items))
        if name in ("DoubleList", "BoolList"):
            return _listed(map(repr, value.items))
        if name != "Tensor":
            return "nothing" if name == "Null" else name
        place = value.allocation_info
        if place is not None:
            at = place.memory_id, place.memory_offset_low | place.memory_offset_high << 32
        elif value.data_buffer_idx:
            at = "constant", _digest(self._buffers[value.data_buffer_idx].storage)
        else:  # an argument that is not given, if it has no elements
            at = "nothing" if [*value.sizes] == [0] else "unplanned", None
        return _tensor(value.scalar_type, value.sizes, value.dim_order, *at)

    def meant(self, argument: Any) -> str | None:
        """None for what the program computes, and for what no kernel reads."""
        if isinstance(argument, torch.fx.Node):
            spec, constant = argument.meta.get("spec"), self._constants.get(argument.name)
            return self._described(spec, constant) if isinstance(spec, TensorSpec) else None
        if isinstance(argument, TensorSpec):
            return self._described(argument, None)
        if isinstance(argument, (list, tuple)):
            items = [self.meant(each) for each in argument]
            return None if None in items else _listed(map(str, items))
        if isinstance(argument, torch.dtype):
            return repr(int(scalar_type_enum(argument)))
        if isinstance(argument, (torch.layout, torch.memory_format)):
            return None
        return "nothing" if argument is None else repr(argument)

    def _described(self, spec: TensorSpec, constant: torch.Tensor | None) -> str | None:
        at = spec.mem_id, spec.mem_offset
        if spec.mem_id is None:
            if constant is None:
                return None
            stored = constant.detach().permute(tuple(spec.dim_order)).contiguous()
            at = "constant", _digest(stored.reshape(-1).view(torch.uint8).numpy().tobytes())
        return _tensor(scalar_type_enum(spec.dtype), spec.shape, spec.dim_order, *at)


def _listed(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _tensor(dtype: Any, sizes: Any, order: Any, buffer: object, place: object) -> str:
    if buffer == "nothing":
        return "nothing"
    where = f"with the bytes {place}" if buffer == "constant" else f"at {place} of buffer {buffer}"
    return f"{dtype.name.lower()}{[*sizes]} in order {[*order]} {where}"
