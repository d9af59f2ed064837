"""A command stream as text: one line per command, with its byte offset."""

from __future__ import annotations

from collections.abc import Iterator

from harness.ethosu.blob import Actions
from harness.ethosu.registers import SCALES, register_set
from harness.ethosu.stream import Operation, Write, instructions
from harness.ethosu.u85.elementwise import MODES as ELEMENTWISE

_POOLING = ("MAX", "AVERAGE", "REDUCE_SUM", "SUM", "NONE", "MIN", "ARGMAX_X", "ARGMAX_Y")
_HEX = ("BASE", "SRC", "DST", "PRECISION", "KERNEL_STRIDE", "ACTIVATION", "ACC_FORMAT", "REGION")


def disassemble(actions: Actions) -> Iterator[str]:
    """Operations stand out from the register writes that lead to them."""
    names = register_set(actions.config.product)
    yield f"; {actions.config.name}, {len(actions.words)} words"
    for item in instructions(actions.words, names):
        if isinstance(item, Write):
            yield f"{item.offset:6x}    {item.register:<20} {_value(item)}"
        else:
            yield f"{item.offset:6x}  {_operation(item)}"


def _value(item: Write) -> str:
    if item.register in SCALES:
        return f"{item.value & 0xFFFFFFFF} >> {item.value >> 32 & 63} ({item.value >> 38:#x})"
    if item.register.endswith("ZERO_POINT") or item.register.startswith("ACTIVATION_M"):
        return str(item.value - 0x10000 if item.value & 0x8000 else item.value)
    hexadecimal = any(part in item.register for part in _HEX)
    return f"{item.value:#x}" if hexadecimal else str(item.value)


def _operation(item: Operation) -> str:
    if item.name == "POOL":
        return f"POOL {_POOLING[item.parameter & 7]}"
    if item.name == "ELEMENTWISE":
        return f"ELEMENTWISE {ELEMENTWISE.get(item.parameter & 63, item.parameter & 63)}"
    if item.name == "BRANCH":
        condition = "RF_TRUE" if item.parameter & 1 else "ALWAYS"
        return f"BRANCH {condition} {item.target:#x}"
    return f"{item.name} {item.parameter}" if item.parameter else item.name
