"""SYS_HEAPINFO as the FVPs answer it: what it says, and where a program asks for it.

QEMU 7.2 makes up a stack of its own (it says stack base 0x80000 to a program in ITCM), and
newlib's start-up takes that for its stack pointer. The models say what their parameters say, and
0 means: as the program was linked. (Arm, "Semihosting for AArch32 and AArch64", SYS_HEAPINFO;
newlib, libgloss/arm/crt0.S.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SYS_HEAPINFO = 0x16
_CALL = b"\xab\xbe"  # BKPT 0xAB, the semihosting call of the M profile
_BACK = 24  # halfwords before a call in which its operation is loaded
_COPY = 4  # and copied to r0
_AHEAD = 6  # instructions from there to the call of a function that does the call
_WIDE = (0xF04F, 0xF05F, 0xF240)  # first halfwords
_IN_FUNCTION = 16  # bytes from a function's start to the call, when it only passes r0 on


@dataclass(frozen=True)
class HeapInfo:
    """The answer. The defaults are those of a Cortex-M in Fast Models, as the README of the
    debugger cornea shows them for one; no Corstone model's own list was at hand."""

    heap_base: int = 0
    heap_limit: int = 0x2070_0000
    stack_base: int = 0x2080_0000
    stack_limit: int = 0x2070_0000

    def block(self) -> bytes:
        words = (self.heap_base, self.heap_limit, self.stack_base, self.stack_limit)
        return struct.pack("<4I", *(word & 0xFFFFFFFF for word in words))


@dataclass(frozen=True)
class HeapCall:
    """An instruction at which r0 may be SYS_HEAPINFO, and r1 its block; ``size`` is in bytes.

    ``tail``: a jump to a function, which returns to the caller's caller.
    """

    address: int
    size: int
    tail: bool = False


@dataclass(frozen=True)
class Code:
    """Bytes that are executed at ``address``."""

    address: int
    data: bytes


def heap_calls(code: Sequence[Code]) -> tuple[HeapCall, ...]:
    """Where a program may ask for it: a semihosting call shortly behind the loading of 0x16 into
    any register, or the call of a function that starts with a semihosting call.

    That r0 is 0x16 then has to be asked when the program is there.
    """
    found = {}
    for piece in code:
        sites = list(_sites(piece.data))
        for at in sites:
            if _operation_loaded(piece.data, at):
                found[piece.address + at] = HeapCall(piece.address + at, 2)
        for call in _through_functions(piece, sites):
            found[call.address] = call
    return tuple(found[address] for address in sorted(found))


def _sites(data: bytes) -> Iterator[int]:
    at = data.find(_CALL)
    while at >= 0:
        if at % 2 == 0:
            yield at
        at = data.find(_CALL, at + 1)


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")


def _operation_loaded(data: bytes, call: int) -> bool:
    """Whether 0x16 is loaded shortly before, into r0 or into the register that r0 is copied from
    (MOV T1), as compilers do it for inline assembly."""
    register = 0
    for at in range(max(0, call - 2 * _COPY), call, 2):
        if _half(data, at) & 0xFF87 == 0x4600:
            register = _half(data, at) >> 3 & 15
    return any(_loaded(data, at) == register for at in range(max(0, call - 2 * _BACK), call, 2))


def _loaded(data: bytes, at: int) -> int | None:
    """The register into which the instruction loads 0x16, if that is what it does.

    MOVS Rd, #imm8 (T1), MOV.W Rd, #const (T2), MOVW Rd, #imm16 (T3): Armv8-M ARM, C2.4.
    """
    first, second = _half(data, at), _half(data, at + 2)
    if first & 0xF8FF == 0x2000 | SYS_HEAPINFO:
        return first >> 8 & 7
    if first in _WIDE and second & 0xF0FF == SYS_HEAPINFO:
        return second >> 8
    return None


def _through_functions(piece: Code, sites: Sequence[int]) -> Iterator[HeapCall]:
    """``movs r0, #0x16`` and then BL or B.W to a function that begins with a semihosting call."""
    starts = {at - back for at in sites for back in range(0, _IN_FUNCTION + 1, 2)}
    data = piece.data
    for here in _behind_r0(data):
        at = here
        for _ in range(_AHEAD):
            first, second = _half(data, at), _half(data, at + 2)
            if first >> 11 == 0b11110 and second & 0x9000 == 0x9000:
                if at + 4 + _offset(first, second) in starts:
                    yield HeapCall(piece.address + at, 4, tail=not second & 0x4000)
                break
            at += 4 if first >> 11 in (0b11101, 0b11110, 0b11111) else 2


def _behind_r0(data: bytes) -> Iterator[int]:
    """The places behind each loading of 0x16 into r0."""
    for last, size in ((b"\x16\x20", 2), (b"\x16\x00", 4)):
        end = data.find(last) + 2
        while end >= 2:
            if end % 2 == 0 and end >= size and _loaded(data, end - size) == 0:
                yield end
            end = data.find(last, end - 1) + 2


def _offset(first: int, second: int) -> int:
    """Of BL (T1) and B.W (T4): Armv8-M ARM, C2.4."""
    sign = first >> 10 & 1
    bits = [sign, 1 ^ sign ^ (second >> 13 & 1), 1 ^ sign ^ (second >> 11 & 1)]
    value = bits[0] << 24 | bits[1] << 23 | bits[2] << 22
    value |= (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    return value - (1 << 25) if sign else value
