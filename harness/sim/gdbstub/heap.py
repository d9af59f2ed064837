"""SYS_HEAPINFO as the FVPs answer it: what it says, and where a program asks for it.

QEMU 7.2 makes up a stack of its own (it says stack base 0x80000 to a program in ITCM), and
newlib's start-up takes that for its stack pointer. The models say what their parameters say, and
0 means: as the program was linked. (Arm, "Semihosting for AArch32 and AArch64", SYS_HEAPINFO;
newlib, libgloss/arm/crt0.S.)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

SYS_HEAPINFO = 0x16
_BKPT = 0xBEAB  # BKPT 0xAB, the semihosting call of the M profile
_CALL = re.compile(rb"\xab\xbe")
# MOVS Rd, #0x16; MOV.W and MOVS.W Rd, #0x16; MOVW Rd, #0x16: Rd is in the last byte.
_LOADED = re.compile(rb"(?=\x16[\x20-\x27]|[\x4f\x5f]\xf0\x16[\0-\x0e]|\x40\xf2\x16[\0-\x0e])")
_AHEAD = 24  # instructions from there to the call
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


@dataclass(frozen=True, order=True)
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
    """Where a program may ask for it: 0x16 is loaded, comes into r0, and not far behind is a
    semihosting call or the call of a function that begins with one.

    Whether r0 is 0x16 then has to be looked at when the program is there.
    """
    found: set[HeapCall] = set()
    for piece in code:
        calls = {match.start() for match in _CALL.finditer(piece.data)}
        calls = {at for at in calls if at % 2 == 0}
        if not calls:
            continue
        starts = {at - back for at in calls for back in range(0, _IN_FUNCTION + 1, 2)}
        for match in _LOADED.finditer(piece.data):
            if match.start() % 2 == 0:
                found.update(_followed(piece, match.start(), starts))
    return tuple(sorted(found))


def _followed(piece: Code, at: int, starts: Set[int]) -> Iterator[HeapCall]:
    """Go on from the loading of 0x16, in a straight line, to the first call that has it in r0.

    The instructions are those of the Armv8-M Architecture Reference Manual, part C2.
    """
    data = piece.data
    narrow = data[at + 1] & 0xF8 == 0x20
    register = data[at + 1] & 7 if narrow else data[at + 3]
    in_r0 = register == 0
    at += 2 if narrow else 4
    for _ in range(_AHEAD):
        first, second = _half(data, at), _half(data, at + 2)
        if first == _BKPT:
            if in_r0:
                yield HeapCall(piece.address + at, 2)
            return
        if first >> 11 == 0b11110 and second & 0x9000 == 0x9000:  # BL, B.W
            if in_r0 and at + 4 + _offset(first, second) in starts:
                yield HeapCall(piece.address + at, 4, tail=not second & 0x4000)
            return
        if first & 0xFF00 in (0x4700, 0xBD00) or first & 0xF800 == 0xE000:  # BX, POP pc, B
            return
        if first & 0xFF87 == 0x4600:  # MOV r0, Rm
            in_r0 = first >> 3 & 15 == register
        elif first & 0xFF00 == 0x2000:  # MOVS r0, #imm8
            in_r0 = False
        at += 4 if first >> 11 in (0b11101, 0b11110, 0b11111) else 2


def _half(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little")


def _offset(first: int, second: int) -> int:
    """Of BL (T1) and B.W (T4)."""
    sign = first >> 10 & 1
    value = sign << 24
    value |= (1 ^ sign ^ (second >> 13 & 1)) << 23 | (1 ^ sign ^ (second >> 11 & 1)) << 22
    value |= (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    return value - (1 << 25) if sign else value
