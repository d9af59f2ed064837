"""Protects the memory figures: every allocated byte is in its region, once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.config.target import Region
from harness.core.errors import InfraError
from harness.size.anatomy import Part
from harness.size.elf_anatomy import LOAD_IMAGE, NO_REGION, section_parts
from harness.size.measure import figures_of_firmware, measure_file

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


def linked(source: Path, script: Path) -> Path:
    elf = script.with_suffix(".elf")
    subprocess.run(
        [
            "arm-none-eabi-gcc",
            "-mcpu=cortex-m55",
            "-mthumb",
            "-nostdlib",
            "-Wl,-e,main",
            "-T",
            script,
            source,
            "-o",
            elf,
        ],
        cwd=script.parent,
        check=True,
    )
    return elf


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("elf")
    (directory / "a.c").write_text(SOURCE)
    (directory / "a.ld").write_text(SCRIPT)
    return linked(directory / "a.c", directory / "a.ld")


def test_regions_hold_what_the_linker_put_there(elf: Path) -> None:
    sizes = {part.path: part.bytes for part in section_parts(elf, REGIONS)}
    assert sizes.pop(("CODE", "code", ".text")) > 0
    assert sizes == {
        ("CODE", "data", ".rodata"): 1000,
        ("RAM", "data", ".data"): 300,
        (NO_REGION, "reserved", ".bss"): 5000,  # in a region that was not named
    }


def test_what_is_stored_elsewhere_takes_memory_twice(elf: Path, tmp_path: Path) -> None:
    """Initialised data lies in the flash too, from where the start-up copies it."""
    (tmp_path / "a.ld").write_text(SCRIPT.replace(">RAM", ">RAM AT>CODE"))
    copied = linked(elf.with_name("a.c"), tmp_path / "a.ld")
    parts = section_parts(copied, REGIONS)
    assert Part(("CODE", LOAD_IMAGE, ".data"), 300) in parts
    figures = figures_of_firmware(parts, ["CODE", "RAM"])
    before = figures_of_firmware(section_parts(elf, REGIONS), ["CODE", "RAM"])
    assert figures["elf_CODE"] == before["elf_CODE"] + 300
    assert figures["elf_RAM"] == before["elf_RAM"] == 300
    assert figures["elf_loaded"] == before["elf_loaded"] + 300
    assert figures["elf_text"] == before["elf_text"]


def test_sections_and_anatomy_give_the_same_figures(elf: Path) -> None:
    """One name, one value, whether a run or a gate computes it."""
    names = [r.name for r in REGIONS]
    whole = measure_file(elf, REGIONS)
    figures = figures_of_firmware(section_parts(elf, REGIONS), names)
    assert figures == figures_of_firmware(whole.parts, names)
    assert figures["elf_outside"] == 5000


def test_totals_agree_with_the_size_tool(elf: Path) -> None:
    printed = subprocess.run(
        ["arm-none-eabi-size", "-A", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    words = [line.split() for line in printed.splitlines()]
    allocated = sum(int(w[1]) for w in words if w and w[0] in (".text", ".rodata", ".data", ".bss"))
    assert sum(part.bytes for part in section_parts(elf, REGIONS)) == allocated


@pytest.mark.parametrize("content", [b"", b"not an elf", b"\x7fELF" + bytes(100)])
def test_what_is_not_an_elf_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.elf").write_bytes(content)
    with pytest.raises(InfraError, match=r"cannot read .*x\.elf as an ELF"):
        section_parts(tmp_path / "x.elf", REGIONS)
    with pytest.raises(InfraError, match=r"cannot read .*none\.elf as an ELF"):
        section_parts(tmp_path / "none.elf", REGIONS)
