"""Words to operations: registers persist, and every operation sees a copy of them.

A word has its opcode in bits 9:0 and its kind in bits 15:14; kind 0 is 32 bits long with the
parameter in 31:16, kind 1 has a second word (regor's ``ethos_u85_interface.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.ethosu.errors import StreamError, Unsupported
from harness.ethosu.registers import BRANCH, PLAIN_32, SIGNED_40, RegisterSet

NO_EFFECT = frozenset({"DMA_WAIT", "KERNEL_WAIT", "PMU_MASK", "IRQ"})


class Registers:
    """The values that an operation sees, with the error for one that was never written."""

    __slots__ = ("_values", "offset")

    def __init__(self, values: dict[str, int], offset: int) -> None:
        self._values = values
        self.offset = offset

    def __getitem__(self, name: str) -> int:
        try:
            return self._values[name]
        except KeyError:
            raise StreamError(f"{name} is used before it is set", self.offset) from None

    def get(self, name: str, default: int = 0) -> int:
        return self._values.get(name, default)

    def signed16(self, name: str) -> int:
        value = self[name] & 0xFFFF
        return value - 0x10000 if value & 0x8000 else value

    def bits(self, name: str, low: int, width: int = 1) -> int:
        return self[name] >> low & ((1 << width) - 1)

    def unsupported(self, register: str, value: object, why: str = "") -> Unsupported:
        return Unsupported(register, value, self.offset, why)


@dataclass(frozen=True, slots=True)
class Write:
    """One register write."""

    offset: int
    register: str
    value: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation word; ``target`` is the byte that a BRANCH goes to."""

    offset: int
    name: str
    parameter: int
    target: int = 0


def decode_at(words: Sequence[int], at: int, names: RegisterSet) -> tuple[Write | Operation, int]:
    """What stands at word ``at``, and the index of the word after it."""
    word, offset = words[at], 4 * at
    opcode, kind, parameter = word & 0x3FF, word >> 14 & 3, word >> 16
    if word & 0x3C00:
        raise StreamError(f"reserved bits are set in {word:#010x}", offset)
    if kind == 0:
        if opcode in names.operations:
            return Operation(offset, names.operations[opcode], parameter), at + 1
        if opcode in names.cmd0:
            return Write(offset, names.cmd0[opcode], parameter), at + 1
        raise StreamError(f"unknown 32-bit command {opcode:#x}", offset)
    if kind != 1:
        raise StreamError(f"unknown kind of command {kind} in {word:#010x}", offset)
    if at + 1 >= len(words):
        raise StreamError("the stream ends inside a 64-bit command", offset)
    payload = words[at + 1]
    if opcode == BRANCH and names.has_branch:
        return Operation(offset, "BRANCH", parameter, payload), at + 2
    if opcode not in names.cmd1:
        raise StreamError(f"unknown 64-bit command {opcode:#x}", offset)
    return Write(offset, names.cmd1[opcode], _wide(names.cmd1[opcode], parameter, payload)), at + 2


def _wide(name: str, parameter: int, payload: int) -> int:
    """The value of a 64-bit register: 40-bit addresses, signed where they are steps.

    Scales keep shift and rounding above bit 32, as they stand in the word.
    """
    if name.endswith(("SCALE", "_LENGTH")) or name in PLAIN_32:
        return parameter << 32 | payload
    value = (parameter & 0xFF) << 32 | payload
    if name in SIGNED_40 and value & 1 << 39:
        value -= 1 << 40
    return value


def operation_count(items: Iterable[Write | Operation]) -> int:
    """Of a stream without branches; cheaper than what it takes to know what they are."""
    count = 0
    for item in items:
        if isinstance(item, Operation):
            if item.name == "STOP":
                break
            count += item.name not in NO_EFFECT
    return count


def has_branches(items: Iterable[Write | Operation]) -> bool:
    return any(isinstance(item, Operation) and item.name == "BRANCH" for item in items)


def instructions(words: Sequence[int], names: RegisterSet) -> Iterator[Write | Operation]:
    """Every command in address order, for listing; STOP does not end it."""
    at = 0
    while at < len(words):
        item, at = decode_at(words, at, names)
        yield item


def operations(
    items: Iterable[Write | Operation], end: int
) -> Iterator[tuple[Operation, Registers]]:
    """Operations that do something, with their registers, up to STOP; no branches here. ``end``:
    byte behind the stream."""
    values: dict[str, int] = {}
    for item in items:
        if isinstance(item, Write):
            values[item.register] = item.value
        elif item.name == "STOP":
            return
        elif item.name not in NO_EFFECT:
            yield item, Registers(dict(values), item.offset)
    raise StreamError("the stream has no STOP", end)
