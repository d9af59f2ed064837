"""Where a program asks for SYS_HEAPINFO, found in machine code; and what it is told."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from harness.formats.elf import read_elf
from harness.sim.gdbstub.program import Code, HeapCall, HeapInfo, heap_calls

BASE = 0x10000000


def assembled(folder: Path, text: str) -> list[Code]:
    """The code of some Thumb assembly, linked to lie at BASE."""
    source, elf = folder / "code.S", folder / "code.elf"
    source.write_text(f".syntax unified\n.thumb\n.text\n.global start\nstart:\n{text}\n")
    subprocess.run(
        [
            "arm-none-eabi-gcc",
            "-mcpu=cortex-m55",
            "-nostdlib",
            f"-Wl,-Ttext={BASE:#x}",
            "-Wl,-e,start",
            "-Wl,-n",
            "-o",
            elf,
            source,
        ],
        check=True,
    )
    found = read_elf(elf)
    return [Code(s.run, found.data[s.offset :][: s.file_size]) for s in found.segments if s.code]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("movs r0, #22; add r1, pc, #192; bkpt 0xab", HeapCall(BASE + 4, 2)),  # newlib's crt0.S
        ("mov.w r0, #22; bkpt 0xab", HeapCall(BASE + 4, 2)),
        ("movw r0, #22; bkpt 0xab", HeapCall(BASE + 4, 2)),
        ("movs r4, #22; str r1, [sp]; mov r0, r4; mov r1, r5; bkpt 0xab", HeapCall(BASE + 8, 2)),
        ("mov.w r9, #22; mov r0, r9; bkpt 0xab", HeapCall(BASE + 6, 2)),
        ("movs r0, #22; ldr.w r1, [sp, #4]; bl f; b .; f: bkpt 0xab", HeapCall(BASE + 6, 4)),
        ("movs r0, #22; b.w f; nop; f: push {lr}; bkpt 0xab", HeapCall(BASE + 2, 4, tail=True)),
        ("f: bkpt 0xab; bx lr; nop; movs r0, #22; bl f", HeapCall(BASE + 8, 4)),  # backwards
    ],
)
def test_ways_to_ask(tmp_path: Path, text: str, call: HeapCall) -> None:
    assert heap_calls(assembled(tmp_path, text)) == (call,)


@pytest.mark.parametrize(
    "text",
    [
        "movs r0, #21; bkpt 0xab",  # SYS_GET_CMDLINE
        "movs r0, #22; bkpt 0xac",
        "movs r3, #22; movs r0, #4; bkpt 0xab",  # EINVAL, for somebody else
        "movs r3, #22; mov r0, r4; bkpt 0xab",
        "movs r0, #22; " + "nop; " * 24 + "bkpt 0xab",
        "movs r0, #22; bl g; b .; .space 32; g: bx lr; .space 32; bkpt 0xab",
        "movs r0, #4; bl f; b .; f: bkpt 0xab",
    ],
)
def test_what_is_not_asking(tmp_path: Path, text: str) -> None:
    """A breakpoint where it is not needed costs time, and one nobody needs costs a debugger."""
    assert heap_calls(assembled(tmp_path, text)) == ()


def test_any_bytes_can_be_code() -> None:
    """What an executable segment has of data is looked at, too: also a call at its very end."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    pieces = (b"\xab\xbe", b"\x16\x20", b"\x4f\xf0\x16\x00", b"\x00\xf0\x00\xf8", b"\x20\x46", b"x")
    for _ in range(300):
        data = b"".join(draw.choice(pieces) for _ in range(draw.randrange(40)))
        for call in heap_calls([Code(BASE, data)]):
            assert BASE <= call.address < BASE + len(data)


def test_the_answer() -> None:
    """The order is the specification's: heap base and limit, stack base and limit."""
    assert HeapInfo(1, 2, 3, 4).block() == struct.pack("<4I", 1, 2, 3, 4)
    assert HeapInfo(-1, 0, 0, 0).block()[:4] == b"\xff" * 4
