"""What the wheel's own runtime makes of each call of a portable kernel in a program, by itself, on
random values: right, by torch, or wrong, or refused.

Each call is a fork of this process: a kernel may write beyond its tensors.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.exir import schema as et
from executorch.exir._serialize._program import (
    PTEFile,
    deserialize_pte_binary,
    serialize_pte_binary,
)
from executorch.exir.tensor import enum_to_scalar_map, stride_from_dim_order
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

_ALIGNED = 16  # as memory is planned
_FAR = 1e-3  # of floats: sums are made in another order
_MISSING = "0x14"  # no such kernel
WRONG, REFUSED, RIGHT, UNKNOWN = "wrong", "refused", "right", "unknown"


def outcomes(pte: Path) -> dict[int, str]:
    """What was found, by the number of the instruction."""
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    program = deserialize_pte_binary(pte.read_bytes()).program
    (plan,) = program.execution_plan
    return {
        number: _in_a_fork(partial(_compared, plan, operator, arguments))
        for number, operator, arguments in _instructions(plan)
        if operator is not None and operator.name.startswith("aten::")
        if _is_asked(plan, arguments)
    }


def _is_asked(plan: et.ExecutionPlan, arguments: Sequence[int]) -> bool:
    """With a tensor in another order than the plain one, and none without elements, which the
    wheel's Python does not pass on."""
    tensors = [t for v in _flat(plan, arguments) if (t := _tensor(plan, v))]
    plain = all(list(t.dim_order) == sorted(t.dim_order) for t in tensors)
    return not plain and all(_numel(t) for t in tensors)


def _instructions(plan: et.ExecutionPlan) -> Iterator[tuple[int, et.Operator | None, list[int]]]:
    """Number, operator (None: a delegate) and arguments, of what computes something."""
    for number, instruction in enumerate(i for c in plan.chains for i in c.instructions):
        call = instruction.instr_args
        if isinstance(call, et.KernelCall):
            yield number, plan.operators[call.op_index], list(call.args)
        elif isinstance(call, et.DelegateCall):
            yield number, None, list(call.args)


def _name(operator: et.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def _numel(tensor: et.Tensor) -> int:
    return int(np.prod(tensor.sizes))


def _written(
    plan: et.ExecutionPlan, operator: et.Operator | None, arguments: Sequence[int]
) -> list[int]:
    """The tensors that an instruction may write: all of a delegate's."""
    if operator is None or (schema := _schema(operator)) is None:
        every = [value for value in _flat(plan, arguments) if _tensor(plan, value)]
        return every if operator is None else every[-1:]
    named = zip(schema.arguments, arguments, strict=False)
    outputs = [value for argument, value in named if argument.is_out]
    return [value for value in _flat(plan, outputs) if _tensor(plan, value)]


def _schema(operator: et.Operator) -> Any:
    """None for what torch does not know."""
    space, name = operator.name.split("::")
    packet = getattr(getattr(torch.ops, space), name, None)
    overload = getattr(packet, operator.overload or "default", None)
    return getattr(overload, "_schema", None)


def _tensor(plan: et.ExecutionPlan, value: int) -> Any:
    """None for what is no tensor."""
    found = plan.values[value].val
    return found if isinstance(found, et.Tensor) else None


def _flat(plan: et.ExecutionPlan, arguments: Sequence[int]) -> Iterator[int]:
    """Arguments, those of lists of tensors one by one; the result that stands there twice once."""
    for value in dict.fromkeys(arguments):
        found = plan.values[value].val
        if isinstance(found, et.TensorList | et.OptionalTensorList):
            yield from (item for item in found.items if item >= 0)
        else:
            yield value


def _in_a_fork(ask: Callable[[], str]) -> str:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, pickle.dumps(ask()))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as answer:
        content = answer.read()
    _, status = os.waitpid(child, 0)
    if not content:  # it wrote beyond its tensors
        print(f"no answer, {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
        return WRONG
    found: str = pickle.loads(content)
    return found


def _compared(plan: et.ExecutionPlan, operator: et.Operator, arguments: Sequence[int]) -> str:
    generator = torch.Generator().manual_seed(0)
    values = {v: _random(t, generator) for v in _flat(plan, arguments) if (t := _tensor(plan, v))}
    results = _written(plan, operator, arguments)
    given = [value for value in values if value not in results]
    try:
        _compute(plan, operator, arguments, values)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
        return UNKNOWN  # torch has no such operator, or wants other values than random ones
    try:
        program = _alone(plan, operator, arguments, given, results)
        runtime = _load_for_executorch_from_buffer(program)  # reads it where it is: no copy
        got = runtime.run_method("forward", tuple(values[v] for v in given))
    except RuntimeError as error:
        return UNKNOWN if _MISSING in str(error) else REFUSED
    pairs = zip(got, (values[v] for v in results), strict=True)
    close = (torch.isclose(a.double(), b.double(), _FAR, _FAR, equal_nan=True) for a, b in pairs)
    return RIGHT if all(bool(each.all()) for each in close) else WRONG


def _random(tensor: et.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Indices are 0, which is one everywhere."""
    kind = enum_to_scalar_map[tensor.scalar_type]
    strides = stride_from_dim_order(tensor.sizes, bytes(tensor.dim_order))
    made = torch.empty_strided(tensor.sizes, strides, dtype=kind)
    if kind in (torch.int32, torch.int64):
        return made.zero_()
    low = 0 if kind in (torch.bool, torch.uint8) else -100
    values = torch.randint(low, 100, made.shape, generator=generator)
    return made.copy_(values * (0.01 if kind.is_floating_point else 1))


def _compute(
    plan: et.ExecutionPlan,
    operator: et.Operator,
    arguments: Sequence[int],
    values: dict[int, torch.Tensor],
) -> None:
    """The tensors that the operator writes become what it means."""
    name = operator.name.removeprefix("aten::")
    overload = getattr(getattr(torch.ops.aten, name), operator.overload)
    expected = overload._schema.arguments
    called = [_plain(plan, value, values) for value in arguments]
    named = {e.name: v for e, v in zip(expected, called, strict=False) if e.kwarg_only}
    overload(*called[: len(expected) - len(named)], **named)


def _plain(plan: et.ExecutionPlan, value: int, tensors: dict[int, torch.Tensor]) -> Any:
    """An argument as torch takes it."""
    if value in tensors:
        return tensors[value]
    found = plan.values[value].val
    if isinstance(found, et.TensorList | et.OptionalTensorList):
        return [tensors.get(item) for item in found.items]
    if isinstance(found, et.IntList):
        return [plan.values[item].val.int_val for item in found.items]
    if isinstance(found, et.BoolList | et.DoubleList):
        return found.items
    return next(iter(vars(found).values()), None)  # of a number, a text, Null


def _alone(
    plan: et.ExecutionPlan,
    operator: et.Operator,
    arguments: Sequence[int],
    given: Sequence[int],
    results: Sequence[int],
) -> bytes:
    """A program of one instruction, whose tensors are its inputs."""
    used = {*given, *results, *arguments}
    used |= {
        item
        for value in arguments
        if isinstance(found := plan.values[value].val, et.IntList)
        for item in found.items
    }
    values = [v if n in used else et.EValue(et.Null()) for n, v in enumerate(plan.values)]
    end = 0
    for value in (*given, *results):
        where = et.AllocationDetails(1, end, 0) if value in results else None
        tensor = replace(values[value].val, allocation_info=where, data_buffer_idx=0)
        values[value] = et.EValue(tensor)
        if value in results:
            end += -(-_numel(tensor) * 8 // _ALIGNED) * _ALIGNED
    alone = replace(
        plan,
        values=values,
        inputs=list(given),
        outputs=list(results),
        chains=[et.Chain([], [], [et.Instruction(et.KernelCall(0, list(arguments)))], None)],
        operators=[operator],
        delegates=[],
        non_const_buffer_sizes=[0, end],
        non_const_buffer_device=None,
    )
    program = et.Program(0, [alone], [et.Buffer(b"")], [], [], et.SubsegmentOffsets(0, []))
    return bytes(serialize_pte_binary(PTEFile(program)))
