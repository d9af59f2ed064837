"""Programs with one damaged argument, and the check that the runner refuses them by name."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kernels.kernel_program import KernelProgram
from tests.late import Late

schema = Late("executorch.exir.schema")
serialising = Late("executorch.exir._serialize._program")

# Operator (without a namespace one of cortex_m), index of the argument, what takes its place, and
# the message.
Row = tuple[str, int, Any, str]


@dataclass(frozen=True)
class Other:
    """Another argument of the same call, in place of the right one."""

    index: int


@dataclass(frozen=True)
class Reshaped:
    """The same tensor under another shape of as many elements."""

    sizes: tuple[int, ...]


def replacement(plan: Any, call: Any, index: int, wanted: Any) -> Any:
    if isinstance(wanted, Other):
        return copy.deepcopy(plan.values[call.args[wanted.index]])
    if isinstance(wanted, Reshaped):
        value = copy.deepcopy(plan.values[call.args[index]])
        assert isinstance(value.val, schema.Tensor)
        value.val.sizes = list(wanted.sizes)
        if len(wanted.sizes) != len(value.val.dim_order):
            value.val.dim_order = list(range(len(wanted.sizes)))
        return value
    if wanted is None:
        return schema.EValue(schema.Null())
    if isinstance(wanted, list):
        first = len(plan.values)
        plan.values.extend(schema.EValue(schema.Int(v)) for v in wanted)
        return schema.EValue(schema.IntList(list(range(first, first + len(wanted)))))
    kind = {bool: schema.Bool, int: schema.Int, float: schema.Double}[type(wanted)]
    return schema.EValue(kind(wanted))


def full_name(operator: str) -> str:
    return operator if "::" in operator else f"cortex_m::{operator}"


@functools.cache
def parsed(pte: bytes) -> Any:
    """Only to be copied, which takes a third of the time."""
    return serialising.deserialize_pte_binary(pte)


def damage(pte: bytes, operator: str, index: int, wanted: Any) -> bytes:
    """The program with one argument of the operator's call replaced."""
    file = copy.deepcopy(parsed(pte))
    plan = file.program.execution_plan[0]
    names = [o.name for o in plan.operators]
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if isinstance(call, schema.KernelCall) and names[call.op_index] == full_name(operator):
            value = replacement(plan, call, index, wanted)
            call.args[index] = len(plan.values)
            plan.values.append(value)
            return bytes(serialising.serialize_pte_binary(file))
    raise AssertionError(f"no call of {operator}")


def check_refused(
    run_on_host: Callable[..., Any], good: KernelProgram, row: Row, work: Path
) -> None:
    operator, index, wanted, message = row
    bad = damage(good.pte, operator, index, wanted)
    result = run_on_host(bad, good.inputs, len(good.expected), work)
    assert result.status != 0
    assert message in result.log
    assert full_name(operator) in result.log
