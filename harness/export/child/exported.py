"""What an export leaves: read from the serialised program, and written as a Program."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executorch.exir import ExecutorchProgramManager
from executorch.exir import schema as et

from harness.export.child.oracle import DelegateCall
from harness.export.child.tosa_graph import TosaTensor, read_graph
from harness.export.failures import UnsupportedTensor
from harness.export.program import (
    Delegate,
    InputSet,
    NamedDifference,
    OperatorAgreement,
    OracleAgreement,
    Program,
    RawSet,
    TensorSpec,
)
from harness.export.request import ExportRequest, NpuOptions
from harness.npu.blob import find_blobs

DTYPES = {
    "BYTE": "uint8",
    "CHAR": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BOOL": "bool",
}
# Where an Ethos-U keeps a type that Cortex-M does not quantise, ExecuTorch's own operators stay.
_QUANTIZE = {f"{space}::quantize_per_tensor" for space in ("cortex_m", "quantized_decomposed")}
_DEQUANTIZE = {f"{space}::dequantize_per_tensor" for space in ("cortex_m", "quantized_decomposed")}


@dataclass(frozen=True)
class Description:
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    planned_buffers: tuple[int, ...]

    def with_steps(self, steps: Sequence[float | None]) -> Description:
        """With these for the scales of outputs that have none; nothing of it where there are no
        ``steps``."""
        if not steps:
            return self
        told = zip(self.outputs, steps, strict=True)
        outputs = tuple(replace(o, scale=step) if o.scale is None else o for o, step in told)
        return replace(self, outputs=outputs)


def describe(program: ExecutorchProgramManager, input_names: tuple[str, ...]) -> Description:
    """Layout, quantisation and operators of the method ``forward``."""
    (plan,) = program.executorch_program.execution_plan
    quantisers = _quantisers(plan)
    names = tuple(input_names) + ("input",) * (len(plan.inputs) - len(input_names))
    return Description(
        inputs=tuple(
            _tensor_spec(plan, value, name, quantisers.consuming.get(value))
            for value, name in zip(plan.inputs, names, strict=True)
        ),
        outputs=tuple(
            _tensor_spec(plan, value, f"output{index}", quantisers.producing.get(value))
            for index, value in enumerate(plan.outputs)
        ),
        operators=tuple(_operator_name(operator) for operator in plan.operators),
        planned_buffers=tuple(plan.non_const_buffer_sizes[1:]),
    )


def _operator_name(operator: et.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else str(operator.name)


@dataclass(frozen=True)
class _Quantisers:
    """(scale, zero point) by index of the float value on the quantiser's outer side."""

    consuming: dict[int, tuple[float, int]]  # the value is quantised
    producing: dict[int, tuple[float, int]]  # the value comes from a dequantise


def _quantisers(plan: et.ExecutionPlan) -> _Quantisers:
    found = _Quantisers({}, {})
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if not isinstance(call, et.KernelCall):
                continue
            name = plan.operators[call.op_index].name
            if name in _QUANTIZE:
                found.consuming.setdefault(call.args[0], _parameters(plan, call.args))
            elif name in _DEQUANTIZE:
                # An out-variant lists its result last, sometimes twice.
                found.producing[call.args[-1]] = _parameters(plan, call.args)
    return found


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


@dataclass(frozen=True)
class RawDelegate:
    """What an NPU is given, the graph it was compiled from, and its work on each input set."""

    backend: str
    blob: bytes
    tosa: bytes
    calls: tuple[DelegateCall, ...]
    operators: OperatorAgreement


@dataclass(frozen=True)
class Exported:
    """A finished export in memory; ``write`` is the only step that touches the disk."""

    request: ExportRequest
    versions: dict[str, str]
    pte: bytes
    description: Description
    oracle: str
    sets: tuple[RawSet, ...]
    npu: NpuOptions | None
    oracles: tuple[OracleAgreement, ...]
    delegates: tuple[RawDelegate, ...]
    by_design: tuple[NamedDifference, ...] = ()
    not_reproducible: str = ""

    def write(self, directory: Path) -> Program:
        (directory / "program.pte").write_bytes(self.pte)
        described, streams = self.description, find_blobs(self.pte)
        return Program(
            directory=directory,
            model=self.request.model.name,
            compile_target=self.request.compile_target,
            pte="program.pte",
            pte_sha256=hashlib.sha256(self.pte).hexdigest(),
            oracle=self.oracle,
            inputs=described.inputs,
            outputs=described.outputs,
            sets=tuple(_write_set(directory, f"set{i}", s) for i, s in enumerate(self.sets)),
            operators=described.operators,
            planned_buffers=described.planned_buffers,
            versions=self.versions,
            seed=self.request.seed,
            system_config=self.npu.system_config if self.npu else "",
            memory_mode=self.npu.memory_mode if self.npu else "",
            direct_drive=self.npu.direct_drive if self.npu else False,
            oracles=self.oracles,
            delegates=tuple(
                _write_delegate(directory, i, d, streams.index(d.blob))
                for i, d in enumerate(self.delegates)
            ),
            by_design=self.by_design,
            not_reproducible=self.not_reproducible,
        )


def _write_set(directory: Path, name: str, raw: RawSet) -> InputSet:
    (directory / name).mkdir()

    def put(stem: str, contents: tuple[bytes, ...]) -> tuple[str, ...]:
        names = tuple(f"{name}/{stem}{n}.bin" for n in range(len(contents)))
        for place, content in zip(names, contents, strict=True):
            (directory / place).write_bytes(content)
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
        backend=delegate.backend,
        position=position,
        blob=f"{name}/vela.bin",
        tosa=f"{name}/graph.tosa",
        inputs=tuple(map(_tosa_spec, graph.inputs)),
        outputs=tuple(map(_tosa_spec, graph.outputs)),
        operators=delegate.operators,
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
    )


def _tosa_spec(tensor: TosaTensor) -> TensorSpec:
    order = tuple(range(len(tensor.shape)))
    return TensorSpec(tensor.name, tensor.dtype, tensor.shape, order)
