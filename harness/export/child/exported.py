"""Checks and reads the serialised program, and writes it as a Program.

Each instruction must have what the graph has that it was emitted from. The expected outputs come
from the graph, and a runner follows the instructions: what the emitter writes otherwise would look
like the fault of a kernel. Checked are the operator, the numbers, the types, shapes and places of
the tensors, and the bytes of the constants, of each operator of the method; the branches of
``torch.cond`` and the like are graphs of their own, which are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
from executorch.exir import schema as et
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.tensor import TensorSpec as Planned
from executorch.exir.tensor import scalar_type_enum
from torch.export import ExportedProgram

from harness.export.child.expected_outputs import DelegateCall, method_bytes
from harness.export.child.lower import to_program
from harness.export.child.partition import instruction_of, layer_of
from harness.export.child.samples import Sample
from harness.export.child.tosa_graph import read_graph
from harness.export.estimates import Estimate
from harness.export.failures import EmissionDiffers, UnsupportedTensor
from harness.export.graph_values import Row, write_values
from harness.export.program import (
    DTYPES,
    Delegate,
    Delegation,
    InputSet,
    OperatorOrigin,
    Program,
    RawSet,
    TensorSpec,
    Witnessed,
)
from harness.export.request import ExportRequest, NpuOptions, is_ethos_u
from harness.npu.blob import find_blobs

# Cortex-M's operators; ExecuTorch's own remain for types that Cortex-M does not quantise.
_QUANTIZE = {f"{space}::quantize_per_tensor" for space in ("cortex_m", "quantized_decomposed")}
_DEQUANTIZE = {f"{space}::dequantize_per_tensor" for space in ("cortex_m", "quantized_decomposed")}
_BOXED_LISTS = ("IntList", "TensorList", "OptionalTensorList")
# The schema's types of single values: the field, and Python's type. An Int may be of an enum.
_PLAIN: dict[str, tuple[str, Callable[[Any], object]]] = {
    "Int": ("int_val", int),
    "Bool": ("bool_val", bool),
    "Double": ("double_val", float),  # "inf" is text in the schema
    "String": ("string_val", str),
}


@dataclass(frozen=True)
class RawDelegate:
    """The blob of an NPU, the graph it was compiled from, and its calls, one for each input set."""

    blob: bytes
    tosa: bytes
    calls: tuple[DelegateCall, ...]
    estimate: Estimate | None


@dataclass(frozen=True)
class LoweredModel:
    """A model lowered for a target, and the expected outputs for each input set.

    ``others``: the outputs by other oracles. ``python_outputs``: by Python's definitions, if these
    differ. ``output_scales``: one LSB of each output that the program does not dequantise.
    ``intermediates``: a row for each value that the graph computes, if it was run. ``program``: the
    serialised one, where it was needed before. ``evaluated``: outputs of the float model and of the
    program, to measure the accuracy. ``delegation``: reads the serialised program for what an NPU
    does not run."""

    edge: EdgeProgramManager
    oracle: str
    outputs: list[Sample]
    others: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    delegates: tuple[RawDelegate, ...] = ()
    by_design: tuple[str, ...] = ()
    python_outputs: Sequence[Sample] = ()
    output_scales: Sequence[float | None] = ()
    not_reproducible: str = ""
    intermediates: frozenset[Row] = frozenset()
    program: ExecutorchProgramManager | None = None
    witness: Witnessed | None = None
    evaluated: tuple[Sequence[Sample], Sequence[Sample]] = ((), ())
    delegation: Callable[[ExecutorchProgramManager], Delegation] | None = None
    origins: dict[str, OperatorOrigin] = field(default_factory=dict)


def raw_sets(
    described: Program, inputs: Sequence[Sample], lowered: LoweredModel
) -> tuple[RawSet, ...]:
    """Input and expected outputs in the layout of the method."""
    python_outputs = lowered.python_outputs or [()] * len(inputs)
    return tuple(
        RawSet(
            _raw(given, described.inputs),
            _raw(expected, described.outputs),
            _raw(other, described.outputs) if other else (),
        )
        for given, expected, other in zip(inputs, lowered.outputs, python_outputs, strict=True)
    )


def _raw(sample: Sample, specs: Sequence[TensorSpec]) -> tuple[bytes, ...]:
    return tuple(method_bytes(t, s) for t, s in zip(sample, specs, strict=True))


def serialise(
    directory: Path, request: ExportRequest, versions: dict[str, str], lowered: LoweredModel
) -> tuple[bytes, Program]:
    """Return the ``.pte``, and its description without what is in other files."""
    program = lowered.program or to_program(lowered.edge)
    require_emission(program)
    (plan,) = program.executorch_program.execution_plan
    quantised, dequantised = _quantisers(plan)
    names = [*lowered.edge.exported_program().graph_signature.user_inputs]
    names += ["input"] * (len(plan.inputs) - len(names))
    outputs = [
        _tensor_spec(plan, value, f"output{index}", dequantised.get(value))
        for index, value in enumerate(plan.outputs)
    ]
    steps = zip(outputs, lowered.output_scales or [None] * len(outputs), strict=True)
    nodes = program.exported_program().graph.nodes
    layers = {instruction_of(node): layer for node in nodes if (layer := layer_of(node))}
    pte, target = bytes(program.buffer), request.compile_target
    npu = request.npu if is_ethos_u(target) else NpuOptions(target)
    return pte, Program(
        directory=directory,
        model=request.model.name,
        compile_target=target,
        pte="program.pte",
        pte_sha256=hashlib.sha256(pte).hexdigest(),
        oracle=lowered.oracle,
        inputs=tuple(
            _tensor_spec(plan, value, name, quantised.get(value))
            for value, name in zip(plan.inputs, names, strict=True)
        ),
        outputs=tuple(replace(o, scale=step) if o.scale is None else o for o, step in steps),
        sets=(),
        operators=tuple(full_name(operator) for operator in plan.operators),
        layers=tuple(layers.get(number, "") for number, _ in enumerate(_calls(plan))),
        delegation=None if lowered.delegation is None else lowered.delegation(program),
        origins=lowered.origins,
        versions=versions,
        system_config=npu.system_config,
        memory_mode=npu.memory_mode,
        direct_drive=request.direct_drive,
        witness=lowered.witness,
        by_design=lowered.by_design,
        not_reproducible=lowered.not_reproducible,
    )


_Quantisers = dict[int, tuple[float, int]]  # (scale, zero point) by index of the float value


def _quantisers(plan: et.ExecutionPlan) -> tuple[_Quantisers, _Quantisers]:
    """Parameters by value: of the values that are quantised, and of those that are dequantised."""
    quantised: _Quantisers = {}
    dequantised: _Quantisers = {}
    for call in _calls(plan):
        name = plan.operators[call.op_index].name if isinstance(call, et.KernelCall) else ""
        if name in _QUANTIZE:
            quantised.setdefault(call.args[0], _parameters(plan, call.args))
        elif name in _DEQUANTIZE:
            # An out-variant lists its result last, sometimes twice.
            dequantised[call.args[-1]] = _parameters(plan, call.args)
    return quantised, dequantised


def _calls(plan: et.ExecutionPlan) -> list[Any]:
    return [each.instr_args for chain in plan.chains for each in chain.instructions]


def _parameters(plan: et.ExecutionPlan, args: list[int]) -> tuple[float, int]:
    """(de)quantize_per_tensor(input, scale, zero_point, ...) of either namespace."""
    return float(plan.values[args[1]].val.double_val), int(plan.values[args[2]].val.int_val)


def _tensor_spec(
    plan: et.ExecutionPlan, value: int, name: str, quantiser: tuple[float, int] | None
) -> TensorSpec:
    tensor = plan.values[value].val
    if not isinstance(tensor, et.Tensor) or tensor.scalar_type.name not in DTYPES:
        kind = tensor.scalar_type.name if isinstance(tensor, et.Tensor) else type(tensor).__name__
        raise UnsupportedTensor(name, kind)
    scale, zero_point = quantiser or (None, None)
    return TensorSpec(
        name=name,
        dtype=DTYPES[tensor.scalar_type.name],
        shape=tuple(tensor.sizes),
        dim_order=tuple(tensor.dim_order),
        scale=scale,
        zero_point=zero_point,
    )


def write_program(
    described: Program, pte: bytes, sets: Sequence[RawSet], lowered: LoweredModel
) -> None:
    """Write the files of a Program into its empty directory. Raises OSError."""
    directory, streams = described.directory, find_blobs(pte)
    described.pte_path.write_bytes(pte)
    replace(
        described,
        sets=tuple(_write_set(directory, f"set{i}", s) for i, s in enumerate(sets)),
        delegates=tuple(
            _write_delegate(directory, i, d, streams.index(d.blob))
            for i, d in enumerate(lowered.delegates)
        ),
        values=write_values(directory, lowered.intermediates) if lowered.intermediates else "",
    ).save()


def _write_set(directory: Path, name: str, raw: RawSet) -> InputSet:
    (directory / name).mkdir()

    def put(stem: str, contents: tuple[bytes, ...]) -> tuple[str, ...]:
        names = tuple(f"{name}/{stem}{n}.bin" for n in range(len(contents)))
        for file, content in zip(names, contents, strict=True):
            (directory / file).write_bytes(content)
        return names

    return InputSet(
        put("i", raw.inputs), put("expected", raw.expected), put("by_design", raw.by_design)
    )


def _write_delegate(directory: Path, index: int, delegate: RawDelegate, position: int) -> Delegate:
    name = f"delegate{index}"
    (directory / name).mkdir()
    (directory / name / "vela.bin").write_bytes(delegate.blob)
    (directory / name / "graph.tosa").write_bytes(delegate.tosa)
    graph = read_graph(delegate.tosa)
    return Delegate(
        position=position,
        blob=f"{name}/vela.bin",
        tosa=f"{name}/graph.tosa",
        inputs=graph.inputs,
        outputs=graph.outputs,
        sets=tuple(
            _write_set(
                directory,
                f"{name}/set{number}",
                RawSet(
                    tuple(value.tobytes() for value in call.inputs),
                    tuple(value.tobytes() for value in call.outputs),
                ),
            )
            for number, call in enumerate(delegate.calls)
        ),
        estimate=delegate.estimate,
    )


def require_emission(program: ExecutorchProgramManager) -> None:
    """Raise EmissionDiffers for the first instruction that differs."""
    written, exported = program.executorch_program, program.exported_program()
    (plan,) = written.execution_plan
    calls = _calls(plan)
    reader = _Reader(plan.values, written.constant_buffer, _constants(exported))
    for node in exported.graph.nodes:
        number = node.meta.get("debug_handle")  # of its instruction: ``_Emitter._add_debug_handle``
        delegates = node.target is executorch_call_delegate
        if not isinstance(number, int) or not (delegates or hasattr(node.target, "_schema")):
            continue
        call: Any = calls[number] if number < len(calls) else None
        meant = "a delegate" if delegates else full_name(node.target._schema)
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


def full_name(operator: Any) -> str:
    """Return "namespace::name.overload" of a schema of torch's, or an operator of the program."""
    overload = getattr(operator, "overload_name", "") or getattr(operator, "overload", "")
    return f"{operator.name}.{overload}" if overload else str(operator.name)


def _operator(plan: et.ExecutionPlan, call: Any) -> str:
    if isinstance(call, et.KernelCall):
        return full_name(plan.operators[call.op_index])
    return "a delegate" if isinstance(call, et.DelegateCall) else type(call).__name__


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
        values: list[et.EValue],
        buffers: list[et.Buffer],
        constants: Mapping[str, torch.Tensor],
    ) -> None:
        self._values, self._buffers, self._constants = values, buffers, constants

    def found(self, index: int) -> str:
        value: Any = self._values[index].val if index >= 0 else et.Null()
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
            return self._described(spec, constant) if isinstance(spec, Planned) else None
        if isinstance(argument, Planned):
            return self._described(argument, None)
        if isinstance(argument, (list, tuple)):
            items = [self.meant(each) for each in argument]
            return None if None in items else _listed(map(str, items))
        if isinstance(argument, torch.dtype):
            return repr(int(scalar_type_enum(argument)))
        if isinstance(argument, (torch.layout, torch.memory_format)):
            return None
        return "nothing" if argument is None else repr(argument)

    def _described(self, spec: Planned, constant: torch.Tensor | None) -> str | None:
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
