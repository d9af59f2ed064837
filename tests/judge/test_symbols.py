"""What an address means: with a real firmware of four functions, and when there is nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.formats.symbols import Symbols
from harness.judge.symbols import where_spinning, with_symbols
from harness.log import parse_console
from tools.doubles import planted_firmware

needs_gcc = pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs the compiler")
FAULT = "Hard fault. irq=-13, pc={pc:#010x}, lr={lr:#010x}, xpsr=0x0, sp=0x0\n"


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_firmware(tmp_path_factory.mktemp("elf"), "ENDLESS_LOOP").elf


@needs_gcc
def test_a_fault_is_told_with_function_and_source(elf: Path) -> None:
    symbols = Symbols(elf)
    work = next(a for a in range(0x10000100, 0x10001000, 2) if symbols.function(a) == "work")
    log = FAULT.format(pc=work + 4, lr=0x50000000).encode()
    (fault,) = with_symbols(parse_console(log), elf).failures
    assert fault.facts["pc_symbol"] == "work+0x4"
    assert fault.facts["pc_source"].startswith("planted.c:")
    assert "lr_symbol" not in fault.facts
    log = FAULT.format(pc=0x50000000, lr=work + 8).encode()
    (fault,) = with_symbols(parse_console(log), elf).failures
    assert fault.facts["lr_symbol"] == "work+0x8"
    assert "pc_symbol" not in fault.facts


@needs_gcc
def test_only_return_addresses_are_frames(elf: Path) -> None:
    """Data on the stack that happens to look like code is no frame: a call must precede it."""
    symbols = Symbols(elf)
    calls = [a | 1 for a in range(0x10000100, 0x10001000, 2) if symbols.follows_call(a | 1)]
    assert calls
    begin = next(a for a in range(0x10000100, 0x10001000, 2) if symbols.function(a) == "work")
    stack = [begin | 1, calls[0], 0, 0xDFDFDFCF, calls[0] & ~1]
    facts = where_spinning({"pc": begin, "lr": 0}, stack, elf)
    assert facts["pc_symbol"] == "work"
    assert facts["backtrace"] == [symbols.function(calls[0])]


def test_without_an_elf_the_registers_remain(tmp_path: Path) -> None:
    seen = parse_console(FAULT.format(pc=1, lr=2).encode())
    (tmp_path / "text").write_text("no ELF")
    assert with_symbols(seen, tmp_path / "absent") == seen
    assert with_symbols(seen, tmp_path / "text") == seen
    assert where_spinning({"pc": 0x10}, [], None) == {"pc": "0x00000010"}


def test_no_fault_needs_no_elf(tmp_path: Path) -> None:
    seen = replace(parse_console(b"fine\n"), lines=1)
    assert with_symbols(seen, tmp_path) is seen
