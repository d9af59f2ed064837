"""A command stream as text: one line per command, with its byte offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.npu.blob import Actions
from harness.npu.registers import SCALES, register_set
from harness.npu.stream import Operation, Write, instructions
from harness.npu.u55 import elementwise as elementwise_u55
from harness.npu.u55 import operations as operations_u55
from harness.npu.u85 import elementwise as elementwise_u85
from harness.npu.u85 import operations as operations_u85

_HEX = ("BASE", "SRC", "DST", "PRECISION", "KERNEL_STRIDE", "ACTIVATION", "ACC_FORMAT", "REGION")
# the bits of an operation's parameter that hold its mode, and the modes' names
_MODES_U55 = {"POOL": (7, operations_u55.POOLING), "ELEMENTWISE": (63, elementwise_u55.MODES)}
_MODES_U85 = {"POOL": (7, operations_u85.POOLING), "ELEMENTWISE": (63, elementwise_u85.MODES)}


def disassemble(actions: Actions) -> Iterator[str]:
    """Operations stand out from the register writes that lead to them."""
    names = register_set(actions.config.product)
    modes = _MODES_U85 if actions.config.product == "u85" else _MODES_U55
    yield f"; {actions.config.name}, {len(actions.words)} words"
    if actions.requires is not None:
        needs = actions.requires
        yield f"; COP2: features {needs.features:#x}, {needs.cache_bytes} bytes of the NPU's SRAM"
    for item in instructions(actions.words, names):
        if isinstance(item, Write):
            yield f"{item.offset:6x}    {item.register:<20} {_value(item)}"
        else:
            yield f"{item.offset:6x}  {_operation(item, modes)}"


def _value(item: Write) -> str:
    if item.register in SCALES:
        return f"{item.value & 0xFFFFFFFF} >> {item.value >> 32 & 63} ({item.value >> 38:#x})"
    if item.register.endswith("ZERO_POINT") or item.register.startswith("ACTIVATION_M"):
        return str(item.value - 0x10000 if item.value & 0x8000 else item.value)
    hexadecimal = any(part in item.register for part in _HEX)
    return f"{item.value:#x}" if hexadecimal else str(item.value)


def _operation(item: Operation, modes: Mapping[str, tuple[int, Mapping[int, str]]]) -> str:
    if item.name in modes:
        mask, known = modes[item.name]
        return f"{item.name} {known.get(item.parameter & mask, item.parameter & mask)}"
    if item.name == "BRANCH":
        condition = "RF_TRUE" if item.parameter & 1 else "ALWAYS"
        return f"BRANCH {condition} {item.target:#x}"
    return f"{item.name} {item.parameter}" if item.parameter else item.name
