"""Programs of a few instructions, with places in memory that a test chooses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from harness.formats.pte import plans_of
from tests.size.samples import make_pte, tensor

Value = dict[str, Any]
NOTHING: Value = {"val_type": "Null", "val": {}}


def planned(offset: int, size: int = 16, *, buffer: int = 1, high: int = 0, **more: Any) -> Value:
    """An int8 tensor of ``size`` elements at a place."""
    value = tensor([size], planned=offset, **more)
    value["val"]["allocation_info"] |= {"memory_id": buffer, "memory_offset_high": high}
    return value


def kernel(operator: int, *args: int) -> Value:
    return {
        "instr_args_type": "KernelCall",
        "instr_args": {"op_index": operator, "args": [*args]},
    }


def delegate(*args: int) -> Value:
    return {
        "instr_args_type": "DelegateCall",
        "instr_args": {"delegate_index": 0, "args": [*args]},
    }


def move(source: int, to: int) -> Value:
    return {"instr_args_type": "MoveCall", "instr_args": {"move_from": source, "move_to": to}}


def jump_unless(condition: int, to: int) -> Value:
    return {
        "instr_args_type": "JumpFalseCall",
        "instr_args": {"cond_value_index": condition, "destination_instruction": to},
    }


def method(
    values: Sequence[Value],
    instructions: Sequence[Value],
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (),
    sizes: Sequence[int] = (0, 64),
    name: str = "forward",
) -> Value:
    """Operators 0 to 5: an out-variant of each kind that matters."""
    names = (
        ("aten::add", "out"),
        ("cortex_m::quantized_conv2d", "out"),
        ("aten::copy_", ""),
        ("executorch_prim::et_copy_index", "tensor"),
        ("executorch_prim::et_view", "default"),
        ("aten::topk", "values"),
    )
    return {
        "name": name,
        "values": [*values],
        "inputs": [*inputs],
        "outputs": [*outputs],
        "operators": [{"name": name, "overload": overload} for name, overload in names],
        "delegates": [{"id": "NpuBackend"}],
        "chains": [{"inputs": [], "outputs": [], "instructions": [*instructions]}],
        "non_const_buffer_sizes": [*sizes],
    }


def program(*methods: Value) -> bytes:
    return make_pte({"version": 0, "execution_plan": [*methods]})


def offsets_in(content: bytes) -> dict[int, int]:
    """Where in a ``.pte`` the offset of each planned tensor is, by value; not of those at 0, which
    ExecuTorch leaves out."""
    (plan,) = plans_of(content)
    found = {}
    for number, value in enumerate(plan.items("values")):
        val = value.get("val")
        place = None if val is None or val.name != "Tensor" else val.get("allocation_info")
        fields = {} if place is None else place.buffer.layout(place.type, place.pos).offsets
        if place is not None and "memory_offset_low" in fields:
            found[number] = place.pos + fields["memory_offset_low"]
    return found


def with_offset(content: bytes, value: int, offset: int) -> bytes:
    """A ``.pte`` in which a planned tensor is elsewhere."""
    moved = bytearray(content)
    struct.pack_into("<I", moved, offsets_in(content)[value], offset)
    return bytes(moved)
