"""Reads the serialised program and writes it as a Program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
from executorch.exir import schema as et

from harness.export.child.accuracy import CrossCheck
from harness.export.child.emitted import require_emission
from harness.export.child.expected_outputs import DelegateCall, method_bytes
from harness.export.child.lower import to_program
from harness.export.child.samples import Sample
from harness.export.child.tosa_graph import read_graph
from harness.export.estimates import Estimate
from harness.export.failures import UnsupportedTensor
from harness.export.graph_values import Row, write_values
from harness.export.program import (
    DTYPES,
    Delegate,
    Delegation,
    InputSet,
    OperatorOrigin,
    OracleAgreement,
    OutputAccuracy,
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

    ``python_outputs``: by Python's definitions, if these differ. ``output_scales``: one LSB of each
    output that the program does not dequantise. ``intermediates``: a row for each value that the
    graph computes, if it was run. ``program``: the serialised one, where it was needed before.
    ``evaluated``: outputs of the float model and of the program, to measure the accuracy.
    ``delegation``: reads the serialised program for what an NPU does not run."""

    edge: EdgeProgramManager
    oracle: str
    outputs: list[Sample]
    cross_checks: tuple[CrossCheck, ...] = ()
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


@dataclass(frozen=True)
class OracleResults:
    """Facts about a program that are recorded and not judged here."""

    oracles: tuple[OracleAgreement, ...]
    accuracy: tuple[OutputAccuracy, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Serialised:
    """The ``.pte``, and the description of its method ``forward``."""

    pte: bytes
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    layers: tuple[str, ...]
    delegation: Delegation | None

    def raw_sets(self, inputs: Sequence[Sample], lowered: LoweredModel) -> tuple[RawSet, ...]:
        """Input and expected outputs in the layout of the method."""
        python_outputs = lowered.python_outputs or [()] * len(inputs)
        return tuple(
            RawSet(
                _raw(given, self.inputs),
                _raw(expected, self.outputs),
                _raw(other, self.outputs) if other else (),
            )
            for given, expected, other in zip(inputs, lowered.outputs, python_outputs, strict=True)
        )


def _raw(sample: Sample, specs: Sequence[TensorSpec]) -> tuple[bytes, ...]:
    return tuple(method_bytes(t, s) for t, s in zip(sample, specs, strict=True))


def serialise(lowered: LoweredModel) -> Serialised:
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
    return Serialised(
        pte=bytes(program.buffer),
        inputs=tuple(
            _tensor_spec(plan, value, name, quantised.get(value))
            for value, name in zip(plan.inputs, names, strict=True)
        ),
        outputs=tuple(replace(o, scale=step) if o.scale is None else o for o, step in steps),
        operators=tuple(_operator_name(operator) for operator in plan.operators),
        layers=_layers(program, sum(len(chain.instructions) for chain in plan.chains)),
        delegation=None if lowered.delegation is None else lowered.delegation(program),
    )


def _layers(program: ExecutorchProgramManager, instructions: int) -> tuple[str, ...]:
    """Return the layer of the model that each instruction is of, "" if it has none.

    An emitted node has the index of its instruction as its debug handle
    (``_Emitter._add_debug_handle``)."""
    layers: dict[int, str] = {}
    for node in program.exported_program().graph.nodes:
        number, stack = node.meta.get("debug_handle"), node.meta.get("nn_module_stack")
        if hasattr(node.target, "_schema") and isinstance(number, int) and stack:
            layers[number] = list(stack.values())[-1][0]
    return tuple(layers.get(number, "") for number in range(instructions))


def _operator_name(operator: et.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else str(operator.name)


_Quantisers = dict[int, tuple[float, int]]  # (scale, zero point) by index of the float value


def _quantisers(plan: et.ExecutionPlan) -> tuple[_Quantisers, _Quantisers]:
    """Parameters by value: of the values that are quantised, and of those that are dequantised."""
    quantised: _Quantisers = {}
    dequantised: _Quantisers = {}
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if not isinstance(call, et.KernelCall):
                continue
            name = plan.operators[call.op_index].name
            if name in _QUANTIZE:
                quantised.setdefault(call.args[0], _parameters(plan, call.args))
            elif name in _DEQUANTIZE:
                # An out-variant lists its result last, sometimes twice.
                dequantised[call.args[-1]] = _parameters(plan, call.args)
    return quantised, dequantised


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
    directory: Path,
    request: ExportRequest,
    versions: dict[str, str],
    lowered: LoweredModel,
    serialised: Serialised,
    sets: Sequence[RawSet],
    compared: OracleResults,
) -> None:
    """Write the files of a Program into an empty directory. Raises OSError."""
    (directory / "program.pte").write_bytes(serialised.pte)
    target = request.compile_target
    npu = request.npu if is_ethos_u(target) else NpuOptions(target)
    streams = find_blobs(serialised.pte)
    Program(
        directory=directory,
        model=request.model.name,
        compile_target=target,
        pte="program.pte",
        pte_sha256=hashlib.sha256(serialised.pte).hexdigest(),
        oracle=lowered.oracle,
        inputs=serialised.inputs,
        outputs=serialised.outputs,
        sets=tuple(_write_set(directory, f"set{i}", s) for i, s in enumerate(sets)),
        operators=serialised.operators,
        layers=serialised.layers,
        delegation=serialised.delegation,
        origins=lowered.origins,
        versions=versions,
        system_config=npu.system_config,
        memory_mode=npu.memory_mode,
        direct_drive=request.direct_drive,
        oracles=compared.oracles,
        witness=lowered.witness,
        accuracy=compared.accuracy,
        delegates=tuple(
            _write_delegate(directory, i, d, streams.index(d.blob))
            for i, d in enumerate(lowered.delegates)
        ),
        by_design=lowered.by_design,
        not_reproducible=lowered.not_reproducible,
        remarks=compared.remarks,
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
