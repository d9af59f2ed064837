"""Protects the memory figures: every allocated byte is in its region, once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.errors import InfraError
from harness.footprint.elf import measure
from harness.target.model import Region

SOURCE = """
const char constant[1000] = {1};
char initialised[300] = {1};
char zeroed[5000];
int main(void) { return constant[1] + initialised[1] + zeroed[1]; }
"""
SCRIPT = """
MEMORY { CODE (rx) : ORIGIN = 0x1000, LENGTH = 64K
         RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K
         ELSEWHERE (rw) : ORIGIN = 0x60000000, LENGTH = 64K }
SECTIONS { .text : { *(.text*) } >CODE  .rodata : { *(.rodata*) } >CODE
           .data : { *(.data*) } >RAM  .bss : { *(.bss*) } >ELSEWHERE
           /DISCARD/ : { *(.ARM.*) } }
"""
REGIONS = (
    Region(name="CODE", origin=0x1000, size=0x10000),
    Region(name="RAM", origin=0x20000000, size=0x10000),
)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("elf")
    (directory / "a.c").write_text(SOURCE)
    (directory / "a.ld").write_text(SCRIPT)
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-nostdlib", "-Wl,-e,main",
         "-T", "a.ld", "a.c", "-o", "a.elf"],
        cwd=directory, check=True,
    )  # fmt: skip
    return directory / "a.elf"


def test_regions_hold_what_the_linker_put_there(elf: Path) -> None:
    footprint = measure(elf, REGIONS)
    code, ram = footprint.regions
    assert code.data == 1000
    assert (ram.data, ram.reserved, ram.used) == (300, 0, 300)
    assert footprint.outside == 5000  # .bss is in a region that was not named
    assert code.code == footprint.text > 0


def test_totals_agree_with_the_size_tool(elf: Path) -> None:
    printed = subprocess.run(
        ["arm-none-eabi-size", "-A", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    words = [line.split() for line in printed.splitlines()]
    allocated = sum(int(w[1]) for w in words if w and w[0] in (".text", ".rodata", ".data", ".bss"))
    footprint = measure(elf, REGIONS)
    assert sum(use.used for use in footprint.regions) + footprint.outside == allocated


def test_what_is_not_an_elf_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.elf").write_bytes(b"not an elf")
    with pytest.raises(InfraError, match=r"cannot read .*x\.elf as an ELF"):
        measure(tmp_path / "x.elf", REGIONS)
