"""Decodes words to operations. Registers persist; every operation sees a copy of them.

A word has its opcode in bits 9:0 and its kind in bits 15:14; kind 0 is 32 bits long with the
parameter in 31:16, kind 1 has a second word (regor's ``ethos_u85_interface.hpp``). Register names
by opcode and modes of operations are in ``stream.yaml``. Opcodes of U55 and U65:
``ethosu/vela/ethos_u55_regs/ethos_u55_regs.py``; fields and the U85's opcodes: regor's
``ethos_u65_interface.hpp`` and ``ethos_u85_interface.hpp`` (Vela 5.1.0). The bit fields inside a
register are in ``fields.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from harness.core.tables import read_table
from harness.npu.blob import Actions
from harness.npu.errors import StreamError, Unsupported

BRANCH = 0x100  # U85's only operation with a 64-bit word

_STRIDES = ("STRIDE_X", "STRIDE_Y", "STRIDE_C")
SIGNED_40 = (
    frozenset(f"{m}_{p}" for m in ("IFM", "OFM", "IFM2") for p in _STRIDES)
    | {"DMA0_SKIP0", "DMA0_SKIP1", "DMA0_SRC_STRIDE0", "DMA0_SRC_STRIDE1", "DMA0_DST_STRIDE0"}
    | {"DMA0_DST_STRIDE1", "DMA0_IDX_SKIP1"}
)
# Operations that differ only in these addresses share a job (``model.Operations``).
RELOCATABLE_ADDRESSES = frozenset({"IFM_BASE0", "IFM2_BASE0", "OFM_BASE0", "DMA0_SRC", "DMA0_DST"})
SCALES = frozenset({"OFM_SCALE", "OPA_SCALE", "OPB_SCALE", "IFM_SCALE", "IFM2_SCALE"})
# The parameter holds bits 32 to 47 of the value.
FULL_WIDTH = frozenset({"OP_SCALAR", "DMA0_IDX_MAX", "RESIZE_X", "RESIZE_Y"})


@dataclass(frozen=True)
class RegisterSet:
    """The opcodes and the modes of operations of one generation of the NPU."""

    cmd0: Mapping[int, str]
    cmd1: Mapping[int, str]
    operations: Mapping[int, str]
    has_branch: bool
    pooling: Mapping[int, str]
    elementwise: Mapping[int, str]


@cache
def register_set(product: str) -> RegisterSet:
    """Return the registers of a product; the U65's are the U55's."""
    generation = "u85" if product == "u85" else "u55"
    common, own = read_table(__file__)["common"], read_table(__file__)[generation]
    shared = {name: {**common.get(name, {}), **own[name]} for name in own}
    return RegisterSet(**shared, has_branch=generation == "u85")


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
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation word; ``target`` is the byte that a BRANCH goes to."""

    offset: int
    name: str
    parameter: int
    target: int = 0


def decode_at(words: Sequence[int], at: int, names: RegisterSet) -> tuple[Write | Operation, int]:
    """Return the operation at word ``at``, and the index of the word after it."""
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
    if opcode == BRANCH and names.has_branch:
        return Operation(offset, "BRANCH", parameter, _payload(words, at + 1)), at + 2
    if opcode not in names.cmd1:
        raise StreamError(f"unknown 64-bit command {opcode:#x}", offset)
    return Write(offset, names.cmd1[opcode], _wide(names.cmd1[opcode], words, at + 1)), at + 2


def _payload(words: Sequence[int], at: int) -> int:
    if at == len(words):
        raise StreamError("the stream ends inside a 64-bit command", 4 * at - 4)
    return words[at]


def _wide(name: str, words: Sequence[int], at: int) -> int:
    """Return the value of a 64-bit register whose second word is at ``at``.

    It is a 40-bit address, or a signed step. A scale keeps its shift and rounding above bit 32, as
    in the word."""
    parameter, payload = words[at - 1] >> 16, _payload(words, at)
    if name.endswith(("SCALE", "_LENGTH")) or name in FULL_WIDTH:
        return parameter << 32 | payload
    value = (parameter & 0xFF) << 32 | payload
    if name in SIGNED_40 and value & 1 << 39:
        value -= 1 << 40
    return value


_HEX = ("BASE", "SRC", "DST", "PRECISION", "KERNEL_STRIDE", "ACTIVATION", "ACC_FORMAT", "REGION")


def disassemble(actions: Actions) -> Iterator[str]:
    """List a line per command with its offset, also after STOP; register writes are indented."""
    names, words, at = register_set(actions.config.product), actions.words, 0
    yield f"; {actions.config.name}, {len(words)} words"
    if actions.requires is not None:
        needs = actions.requires
        yield f"; COP2: features {needs.features:#x}, {needs.cache_bytes} bytes of the NPU's SRAM"
    while at < len(words):
        item, at = decode_at(words, at, names)
        if isinstance(item, Write):
            yield f"{item.offset:6x}    {item.name:<20} {_value_text(item)}"
        else:
            yield f"{item.offset:6x}  {_operation_text(item, names)}"


def _value_text(item: Write) -> str:
    if item.name in SCALES:
        return f"{item.value & 0xFFFFFFFF} >> {item.value >> 32 & 63} ({item.value >> 38:#x})"
    if item.name.endswith("ZERO_POINT") or item.name.startswith("ACTIVATION_M"):
        return str(item.value - 0x10000 if item.value & 0x8000 else item.value)
    hexadecimal = any(part in item.name for part in _HEX)
    return f"{item.value:#x}" if hexadecimal else str(item.value)


def _operation_text(item: Operation, names: RegisterSet) -> str:
    if item.name == "POOL":
        mode = item.parameter & 7
        return f"POOL {names.pooling.get(mode, mode)}"
    if item.name == "ELEMENTWISE":
        mode = item.parameter & 63
        return f"ELEMENTWISE {names.elementwise.get(mode, mode)}"
    if item.name == "BRANCH":
        condition = "RF_TRUE" if item.parameter & 1 else "ALWAYS"
        return f"BRANCH {condition} {item.target:#x}"
    return f"{item.name} {item.parameter}" if item.parameter else item.name


@dataclass
class RegisterState:
    """Relocatable ``addresses``, and ``others`` with the number of their ``changes``."""

    others: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)
    changes: int = 0

    def registers(self, offset: int) -> Registers:
        return Registers({**self.others, **self.addresses}, offset)


def walk(
    words: Sequence[int], names: RegisterSet, state: RegisterState, at: int = 0
) -> Iterator[Operation]:
    """Yield each operation with an effect and each BRANCH from word ``at`` to STOP.

    It does not follow branches. ``state`` has the registers at that moment. Raises StreamError."""
    others, addresses = state.others, state.addresses
    while at < len(words):
        item, at = decode_at(words, at, names)
        name = item.name
        if isinstance(item, Write):
            if name in RELOCATABLE_ADDRESSES:
                addresses[name] = item.value
            elif others.get(name) != item.value:
                others[name] = item.value
                state.changes += 1
        elif name == "STOP":
            return
        elif name not in NO_EFFECT:
            yield item
    raise StreamError("the stream has no STOP", 4 * len(words))
