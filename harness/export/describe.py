"""Reads what a Program says about itself from the program that will be serialised."""

from __future__ import annotations

from dataclasses import dataclass

from executorch.exir import ExecutorchProgramManager
from executorch.exir import schema as et

from harness.errors import ExportError
from harness.export.program import TensorSpec

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
        raise ExportError(
            f"the method's '{name}' is a {kind}; the runner passes plain tensors only",
            tensor=name,
            type=kind,
        )
    scale, zero_point = quantiser or (None, None)
    return TensorSpec(
        name=name,
        dtype=DTYPES[tensor.scalar_type.name],
        shape=tuple(tensor.sizes),
        dim_order=tuple(tensor.dim_order),
        scale=scale,
        zero_point=zero_point,
    )
