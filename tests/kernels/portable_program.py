"""Programs of single calls: one method for each call, its tensors constants.

ExecuTorch's runtime of the wheel executes them, and ``kernel_calls`` (targets/runner/tests), which
has every operator of the bundled runner.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.late import Late

torch = Late("torch")
schema = Late("executorch.exir.schema")
scalar_types = Late("executorch.exir.scalar_type")
serialising = Late("executorch.exir._serialize._program")

ALIGNMENT = 16
ABORTED = -1  # the process ended: ExecuTorch gives no code


@dataclass(frozen=True)
class Given:
    """A tensor argument, with the order of its dimensions in memory."""

    tensor: torch.Tensor
    order: tuple[int, ...]


@dataclass(frozen=True)
class Made:
    """An output that the program plans."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    order: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One call: "namespace::name.overload" and its arguments in the schema's order, outputs last.
    ``kinds`` are their types in the schema. An argument that is ``written`` is its own output."""

    operator: str
    arguments: tuple[Any, ...]
    kinds: tuple[str, ...]
    written: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(map(told, self.arguments))})"


def told(argument: Any) -> str:
    if isinstance(argument, Given):
        kind, shape = str(argument.tensor.dtype)[6:], list(argument.tensor.shape)
        return f"{kind}{shape}{'' if is_plain(argument.order) else list(argument.order)}"
    if isinstance(argument, Made):
        mark = "" if is_plain(argument.order) else list(argument.order)
        return f"->{str(argument.dtype)[6:]}{list(argument.shape)}{mark}"
    if isinstance(argument, list | tuple):
        return f"[{', '.join(map(told, argument))}]"
    return repr(argument)


def is_plain(order: Sequence[int]) -> bool:
    return list(order) == list(range(len(order)))


@dataclass(frozen=True)
class Outcome:
    """The error's code, 0 for none, and the outputs' bytes."""

    code: int
    outputs: tuple[bytes, ...] = ()


def stored(tensor: torch.Tensor, order: Sequence[int]) -> bytes:
    """The elements in memory order."""
    ordered = tensor.permute(tuple(order)) if tensor.dim() else tensor
    contiguous = ordered.contiguous()
    if contiguous.dtype == torch.bfloat16:
        contiguous = contiguous.view(torch.int16)
    return np.ascontiguousarray(contiguous.numpy()).tobytes()


def type_of(dtype: torch.dtype) -> Any:
    """ExecuTorch's name of an element type."""
    names = {
        torch.uint8: "BYTE",
        torch.int8: "CHAR",
        torch.int16: "SHORT",
        torch.int32: "INT",
        torch.int64: "LONG",
        torch.float16: "HALF",
        torch.float32: "FLOAT",
        torch.float64: "DOUBLE",
        torch.bool: "BOOL",
        torch.bfloat16: "BFLOAT16",
        torch.uint16: "UINT16",
    }
    return getattr(scalar_types.ScalarType, names[dtype])


@dataclass
class _Method:
    """The values of one call."""

    buffers: list[Any]  # of the program
    values: list[Any] = field(default_factory=list)
    planned: int = 0

    def add(self, value: Any) -> int:
        self.values.append(schema.EValue(value))
        return len(self.values) - 1

    def constant(self, given: Given) -> int:
        data = stored(given.tensor, given.order)
        self.buffers.append(schema.Buffer(data or b"\0"))
        shape, dtype = tuple(given.tensor.shape), given.tensor.dtype
        return self._tensor(shape, dtype, given.order, buffer=len(self.buffers) - 1)

    def made(self, made: Made) -> int:
        size = int(np.prod(made.shape, dtype=np.int64)) * torch.empty((), dtype=made.dtype).itemsize
        place = schema.AllocationDetails(1, self.planned, 0)
        self.planned += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return self._tensor(made.shape, made.dtype, made.order, place=place)

    def _tensor(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        order: tuple[int, ...],
        *,
        buffer: int = 0,
        place: Any = None,
    ) -> int:
        return self.add(
            schema.Tensor(
                scalar_type=type_of(dtype),
                storage_offset=0,
                sizes=list(shape),
                dim_order=list(order),
                requires_grad=False,
                layout=0,
                data_buffer_idx=buffer,
                allocation_info=place,
                shape_dynamism=schema.TensorShapeDynamism.STATIC,
            )
        )

    def argument(self, value: Any, kind: str) -> int:
        if isinstance(value, Given):
            return self.constant(value)
        if isinstance(value, Made):
            return self.made(value)
        if value is None:
            return self.add(schema.Null())
        if isinstance(value, torch.dtype):
            return self.add(schema.Int(int(type_of(value))))
        if isinstance(value, bool):
            return self.add(schema.Bool(value))
        if isinstance(value, int) and kind != "float":
            return self.add(schema.Int(value))
        if isinstance(value, int | float):
            return self.add(schema.Double(float(value)))
        if isinstance(value, str):
            return self.add(schema.String(value))
        if "float" in kind:
            return self.add(schema.DoubleList([float(item) for item in value]))
        if "bool" in kind:
            return self.add(schema.BoolList(list(value)))
        if "Optional[Tensor]" in kind:
            items = [self.argument(item, "") for item in value]
            return self.add(schema.OptionalTensorList(items))
        if "Tensor" in kind:
            return self.add(schema.TensorList([self.argument(item, "") for item in value]))
        return self.add(schema.IntList([self.add(schema.Int(item)) for item in value]))


def plan_of(call: Call, name: str, buffers: list[Any]) -> Any:
    """The call as a method. What it writes into is a copy of the argument."""
    method = _Method(buffers)
    operators, instructions = [], []

    def invoke(operator: str, arguments: list[int]) -> None:
        base, _, overload = operator.partition(".")
        operators.append(schema.Operator(base, overload))
        kernel = schema.KernelCall(len(operators) - 1, arguments)
        instructions.append(schema.Instruction(kernel))

    indices, outputs = [], []
    for i, (value, kind) in enumerate(zip(call.arguments, call.kinds, strict=True)):
        index = method.argument(value, kind)
        if i in call.written:
            given = value
            copy = method.made(Made(tuple(given.tensor.shape), given.tensor.dtype, given.order))
            invoke("aten::alias_copy.out", [index, copy, copy])
            index = copy
        indices.append(index)
        if i in call.written or isinstance(value, Made):
            outputs.append(index)
        elif isinstance(value, list) and value and isinstance(value[0], Made):
            outputs += method.values[index].val.items
    invoke(call.operator, [*indices, _returned(call, method, indices, outputs)])
    return schema.ExecutionPlan(
        name=name,
        container_meta_type=schema.ContainerMetadata("", ""),
        values=method.values,
        inputs=[],
        outputs=outputs,
        chains=[schema.Chain([], [], instructions, None)],
        operators=operators,
        delegates=[],
        non_const_buffer_sizes=[0, max(method.planned, ALIGNMENT)],
    )


def _returned(call: Call, method: _Method, indices: list[int], outputs: list[int]) -> int:
    """What a call returns: its output, or the list of them."""
    if not call.written and isinstance(call.arguments[-1], list):
        return indices[-1]
    return outputs[0] if len(outputs) == 1 else method.add(schema.TensorList(list(outputs)))


def program_of(calls: Sequence[Call]) -> bytes:
    """Methods "0", "1", ... of the calls."""
    buffers = [schema.Buffer(b"")]
    plans = [plan_of(call, str(i), buffers) for i, call in enumerate(calls)]
    program = schema.Program(0, plans, buffers, [], [], schema.SubsegmentOffsets(0, []))
    return bytes(serialising.serialize_pte_binary(serialising.PTEFile(program)))


def of_the_wheel(pte: bytes, calls: Sequence[Call]) -> list[Outcome]:
    """As ExecuTorch's runtime executes them. An ET_CHECK ends the process, so that each run is in a
    child, which begins again after the call that ended it."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(calls):
        outcomes += _in_child(pte, calls, len(outcomes))
        if len(outcomes) < len(calls):
            outcomes.append(Outcome(ABORTED))
    return outcomes


def _in_child(pte: bytes, calls: Sequence[Call], first: int) -> list[Outcome]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.close(reading)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.alarm(120)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            _execute(pte, calls, first, pipe)
        os._exit(0)
    os.close(writing)
    outcomes = []
    with os.fdopen(reading, "rb") as pipe:
        while True:
            try:
                outcomes.append(pickle.load(pipe))
            except EOFError:
                break
            except pickle.UnpicklingError:
                break
    os.waitpid(child, 0)
    return outcomes


_CODE = re.compile(r"error(?: code)?:? (?:0x([0-9a-fA-F]+)|(\d+))")


def _execute(pte: bytes, calls: Sequence[Call], first: int, pipe: Any) -> None:
    from executorch.extension.pybindings import portable_lib

    module = portable_lib._load_for_executorch_from_buffer(pte)
    for i in range(first, len(calls)):
        try:
            tensors = module.run_method(str(i), ())
            outputs = tuple(
                stored(t, orders) for t, orders in zip(tensors, _orders(calls[i]), strict=True)
            )
            outcome = Outcome(0, outputs)
        except RuntimeError as error:
            found = _CODE.search(str(error))
            outcome = Outcome(int(found[1], 16) if found and found[1] else 1)
        pipe.write(pickle.dumps(outcome))


def _orders(call: Call) -> list[tuple[int, ...]]:
    """Of each output of the call."""
    orders = []
    for i, value in enumerate(call.arguments):
        if isinstance(value, Made) or i in call.written:
            orders.append(value.order)
        elif isinstance(value, list):
            orders += [item.order for item in value if isinstance(item, Made)]
    return orders


def of_ours(runner: Path, ptes: Sequence[Path]) -> tuple[list[Outcome], list[str]]:
    """The outcomes of all methods in order, and what was logged for each."""
    done = subprocess.run(
        [str(runner), *map(str, ptes)], capture_output=True, timeout=600, check=False
    )
    log = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, log[-4000:]
    data, at = done.stdout, 0

    def word() -> int:
        nonlocal at
        at += 4
        return int(struct.unpack_from("<I", data, at - 4)[0])

    outcomes = []
    while at < len(data):
        code, outputs = word(), []
        for _ in range(0 if code else word()):
            size = word()
            outputs.append(data[at : at + size])
            at += size
        outcomes.append(Outcome(code, tuple(outputs)))
    logged = re.split(r"^method \d+\n", log, flags=re.MULTILINE)[1:]
    return outcomes, logged


def values_in(data: bytes, dtype: torch.dtype) -> torch.Tensor:
    if not data:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype)


def _float_types(call: Call) -> list[torch.dtype]:
    """Integers are computed in float32, as a rule."""
    kinds = [a.tensor.dtype for a in call.arguments if isinstance(a, Given)]
    kinds = [kind if kind.is_floating_point else torch.float32 for kind in kinds]
    return [*kinds, *(kind for kind in written_types(call) if kind.is_floating_point)]


def written_types(call: Call) -> list[torch.dtype]:
    """The element type of each output."""
    types = []
    for i, value in enumerate(call.arguments):
        if isinstance(value, Made):
            types.append(value.dtype)
        elif i in call.written:
            types.append(value.tensor.dtype)
        elif isinstance(value, list):
            types += [item.dtype for item in value if isinstance(item, Made)]
    return types


def differ(call: Call, wheel: Outcome, ours: Outcome, units: float = 0.0) -> str:
    """What is otherwise in our outcome, or an empty string. NaN is NaN; where ExecuTorch aborts,
    any refusal is right. Floats may differ by some ``units`` of the type's precision."""
    if wheel.code == ABORTED:
        return "" if ours.code else "ExecuTorch aborts, and this is computed"
    if wheel.code != ours.code:
        return f"code 0x{ours.code:x}, ExecuTorch's is 0x{wheel.code:x}"
    if ours.code:
        return ""
    coarsest = max((torch.finfo(t).eps for t in _float_types(call)), default=0.0)
    for dtype, mine, theirs in zip(written_types(call), ours.outputs, wheel.outputs, strict=True):
        if mine == theirs:
            continue
        a, b = values_in(mine, dtype), values_in(theirs, dtype)
        near = units * coarsest if dtype.is_floating_point else 0.0
        same = dtype.is_floating_point and torch.allclose(
            a.double(), b.double(), rtol=near, atol=near, equal_nan=True
        )
        if not same:
            return f"{a.tolist()[:12]} for {b.tolist()[:12]}"
    return ""
