"""What an address means: with a real firmware of four functions, in damaged ones, and when there is
nothing."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import MalformedFile
from harness.formats.elf import read_elf
from harness.judge.symbols import Symbols, where_spinning, with_symbols
from harness.log.parser import parse_console
from harness.sim.monitor import CpuState
from tests.size.mutations import mutations
from tools.doubles import planted_firmware

needs_gcc = pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs the compiler")
CODE = range(0x10000100, 0x10001000, 2)
SEED, COUNT = 20260902, 60
FAULT = "Hard fault. irq=-13, pc={pc:#010x}, lr={lr:#010x}, xpsr=0x0, sp=0x0\n"


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_firmware(tmp_path_factory.mktemp("elf"), "ENDLESS_LOOP").elf


@needs_gcc
def test_a_fault_is_reported_with_function_and_source(elf: Path) -> None:
    symbols = Symbols(elf)
    work = next(a for a in CODE if symbols.function(a) == "work")
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
    calls = [a | 1 for a in CODE if symbols.follows_call(a | 1)]
    assert calls
    begin = next(a for a in CODE if symbols.function(a) == "work")
    stack = [begin | 1, calls[0], 0, 0xDFDFDFCF, calls[0] & ~1]
    facts = where_spinning(CpuState({"pc": begin, "lr": 0}, tuple(stack)), elf)
    assert facts["pc_symbol"] == "work"
    assert facts["backtrace"] == [symbols.function(calls[0])]


def test_without_an_elf_the_registers_remain(tmp_path: Path) -> None:
    seen = parse_console(FAULT.format(pc=1, lr=2).encode())
    (tmp_path / "text").write_text("no ELF")
    assert with_symbols(seen, tmp_path / "absent") == seen
    assert with_symbols(seen, tmp_path / "text") == seen
    assert where_spinning(CpuState({"pc": 0x10}, ()), None) == {"pc": "0x00000010"}


def test_no_fault_needs_no_elf(tmp_path: Path) -> None:
    seen = replace(parse_console(b"fine\n"), lines=1)
    assert with_symbols(seen, tmp_path) is seen


@needs_gcc
def test_function_and_source_of_an_address(elf: Path) -> None:
    symbols = Symbols(elf)
    work = next(a for a in CODE if symbols.function(a) == "work")
    assert symbols.function(work + 5) == "work+0x4"  # the Thumb bit is no part of the address
    source = symbols.source(work)
    assert source is not None
    assert source.startswith("planted.c:")
    assert symbols.describe(work + 1) == {"symbol": "work", "source": source}
    assert symbols.function(0x50000000) is None
    assert symbols.source(0x50000000) is None
    assert symbols.describe(4) == {}


@needs_gcc
def test_a_call_is_known_by_the_instruction_before(elf: Path) -> None:
    symbols = Symbols(elf)
    calls = [a | 1 for a in CODE if symbols.follows_call(a | 1)]
    assert calls
    assert not symbols.follows_call(calls[0] & ~1)  # without the Thumb bit it returns to nothing
    assert not symbols.follows_call(0x50000001)


@needs_gcc
def test_without_debug_information_the_name_remains(elf: Path, tmp_path: Path) -> None:
    """Where the line program is damaged, or not there, only the line is lost."""
    file = read_elf(elf)
    work = next(s for s in file.symbols if s.name == "work")
    data = bytearray(file.data)
    for section in file.sections:
        if section.name == ".debug_line":
            data[section.offset : section.offset + 4] = struct.pack("<I", 0xFFFFFFF0)
    (tmp_path / "x").write_bytes(data)
    assert Symbols(tmp_path / "x").describe(work.value) == {"symbol": "work"}


@needs_gcc
def test_random_damage(elf: Path, tmp_path: Path) -> None:
    """A damaged ELF of a fault still gives a judgement: its symbols, or MalformedFile."""
    print(f"seed {SEED}, {COUNT} mutations")
    work = next(s.value for s in read_elf(elf).symbols if s.name == "work")
    for number, (kind, damaged) in enumerate(mutations(elf.read_bytes(), COUNT, SEED)):
        print(f"mutation {number}: {kind}")
        (tmp_path / "x").write_bytes(damaged)
        try:
            Symbols(tmp_path / "x").describe(work)
        except MalformedFile:
            continue


def test_what_is_not_an_elf_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ELF")
    with pytest.raises(MalformedFile, match="do not start with an ELF header"):
        Symbols(tmp_path / "text")
    with pytest.raises(OSError, match="No such file"):
        Symbols(tmp_path / "absent")


@needs_gcc
def test_a_reset_loop_is_reported_with_what_of_the_firmware_can_reset(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "void sys_reboot(int t) { for (;;) {} }\nvoid wdt_setup(void) {}\n"
        "int main(void) { sys_reboot(1); }\n"
    )
    compiler = ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-nostdlib", "-Wl,-emain"]
    subprocess.run([*compiler, "a.c", "-o", "a.elf"], cwd=tmp_path, check=True)
    boots = parse_console(b"*** Booting Zephyr OS build v4.1.0 ***\n" * 3)
    (loop,) = with_symbols(boots, tmp_path / "a.elf").failures
    assert loop.facts["resets"] == "sys_reboot, wdt_setup"
    assert loop.facts["boots"] == "3"


@needs_gcc
def test_a_reset_loop_of_a_firmware_that_cannot_reset(elf: Path) -> None:
    boots = parse_console(b"*** Booting Zephyr OS build v4.1.0 ***\n" * 3)
    (loop,) = with_symbols(boots, elf).failures
    assert "resets" not in loop.facts
