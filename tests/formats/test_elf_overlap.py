"""Protects that a program whose sections lie over each other when it runs is named, where GNU ld
says nothing, and that one with copied data or true overlays is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.core.errors import LinkError
from harness.formats.elf import read_elf
from harness.formats.elf_overlap import SectionsOverlap, overlaps

_SOURCE = """\
int counter = 7;
int table[64];
__attribute__((section(".first"))) int first(void) { return 1; }
__attribute__((section(".second"))) int second(void) { return 2; }
int reset(void) { return counter + table[3] + first() + second(); }
"""
_SCRIPT = """\
MEMORY
{{
  FLASH (rx) : ORIGIN = 0x31000000, LENGTH = 64K
  RAM (rwx) : ORIGIN = {ram}, LENGTH = 64K
}}
ENTRY(reset)
SECTIONS
{{
  .text : {{ *(.text*) {functions} }} > FLASH
  {overlay}
  .data : {{ *(.data*) }} > RAM AT > FLASH
  .bss (NOLOAD) : {{ *(.bss*) }} > RAM
  /DISCARD/ : {{ *(.ARM.exidx*) *(.comment) }}
}}
"""


def linked(folder: Path, *, ram: str = "0x20000000", overlay: bool = False) -> Path:
    """Linked without a warning."""
    functions = "" if overlay else "*(.first) *(.second)"
    script = "OVERLAY 0x20008000 : AT (0x31004000) { .one { *(.first) } .two { *(.second) } }"
    (folder / "a.c").write_text(_SOURCE)
    text = _SCRIPT.format(ram=ram, functions=functions, overlay=script if overlay else "")
    (folder / "a.ld").write_text(text)
    elf = folder / "a.elf"
    words = ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-O1", "-nostdlib"]
    words += ["-Wl,--no-warn-rwx-segments", "-T", str(folder / "a.ld")]
    done = subprocess.run(
        [*words, str(folder / "a.c"), "-o", str(elf)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return elf


def test_data_that_is_copied_at_start_is_fine(tmp_path: Path) -> None:
    assert not list(overlaps(read_elf(linked(tmp_path))))


def test_two_regions_over_one_memory_are_named(tmp_path: Path) -> None:
    found = list(overlaps(read_elf(linked(tmp_path, ram="0x31000000"))))
    assert len(found) == 2
    assert found[0].startswith(".data (0x31000000-0x31000003) lies over .text (0x31000000-")
    assert "4 bytes from 0x31000000 are written over it" in found[0]
    assert found[1].startswith(".bss (0x31000004-")
    assert "bytes from 0x31000004 are cleared over it" in found[1]


def test_overlays_that_are_copied_when_needed_are_fine(tmp_path: Path) -> None:
    assert not list(overlaps(read_elf(linked(tmp_path, overlay=True))))


def test_an_alias_is_the_same_memory(tmp_path: Path) -> None:
    elf = read_elf(linked(tmp_path, ram="0x21000000"))
    assert not list(overlaps(elf))
    found = list(overlaps(elf, lambda address: address & ~0x10000000))
    assert [text.partition(" ")[0] for text in found] == [".data", ".bss"]


def test_an_object_file_has_no_addresses_yet(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(_SOURCE)
    words = ["arm-none-eabi-gcc", "-c", str(tmp_path / "a.c"), "-o", str(tmp_path / "a.o")]
    subprocess.run(words, check=True)
    assert not list(overlaps(read_elf(tmp_path / "a.o")))


def test_the_error_says_what_to_do(tmp_path: Path) -> None:
    found = tuple(overlaps(read_elf(linked(tmp_path, ram="0x31000000"))))
    with pytest.raises(LinkError, match=r"^zephyr\.elf: \.data .* and 1 more$") as error:
        raise SectionsOverlap("zephyr.elf", found)
    assert "CONFIG_XIP=n" in str(error.value.hint)
