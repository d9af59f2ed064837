"""Where a program asks for SYS_HEAPINFO, found in machine code; and what it is told."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from harness.formats.elf import ElfFile, read_elf
from harness.sim.gdbstub.host_calls import HeapInfo, heap_calls

BASE = 0x10000000


def assembled(folder: Path, text: str) -> ElfFile:
    """Some Thumb assembly, linked to lie at BASE."""
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
    return read_elf(elf)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("movs r0, #22; add r1, pc, #192; bkpt 0xab", 4),  # newlib's crt0.S
        ("mov.w r0, #22; bkpt 0xab", 4),
        ("movw r0, #22; bkpt 0xab", 4),
        ("movs r4, #22; str r1, [sp]; mov r0, r4; mov r1, r5; bkpt 0xab", 8),
        ("mov.w r9, #22; mov r0, r9; bkpt 0xab", 6),
        ("movs r0, #22; b.w f; nop; f: push {lr}; bkpt 0xab", 10),
        ("f: bkpt 0xab; bx lr; nop; movs r0, #22; bl f", 0),  # backwards
    ],
)
def test_ways_to_ask(tmp_path: Path, text: str, offset: int) -> None:
    assert heap_calls(assembled(tmp_path, text)) == (BASE + offset,)


@pytest.mark.parametrize(
    "text",
    [
        "movs r0, #21; bkpt 0xab",  # SYS_GET_CMDLINE
        "movs r0, #22; bkpt 0xac",
        'movs r0, #22; bkpt 0xab; .asciz "build id %s"',  # the harness's own runner
    ],
)
def test_what_is_not_asking(tmp_path: Path, text: str) -> None:
    """A breakpoint where it is not needed costs time, and one nobody needs costs a debugger."""
    assert heap_calls(assembled(tmp_path, text)) == ()


def test_the_answer() -> None:
    """The order is the specification's: heap base and limit, stack base and limit."""
    assert HeapInfo(1, 2, 3, 4).block() == struct.pack("<4I", 1, 2, 3, 4)
    assert HeapInfo(-1, 0, 0, 0).block()[:4] == b"\xff" * 4
