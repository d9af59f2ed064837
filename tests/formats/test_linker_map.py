"""Protects the reader of GNU ld's map: what is where, what fills a region, what is an orphan."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.formats.linker_map import (
    FILL,
    InputSection,
    LinkMap,
    MapRegion,
    OutputSection,
    contributors,
    orphans,
    parse_map,
    read_map,
)
from tests.size.mutations import mutations

SEED = 20260903

MAP = """\
Discarded input sections

 .text.unused   0x0000000000000000       0x10 /x/libm.a(a/model.o)
 .text.nothing  0x0000000000000000        0x0 a.o

Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x0000000000000000 0x0000000000001000 xr
RAM              0x0000000020000000 0x0000000000000100 rw
*default*        0x0000000000000000 0xffffffffffffffff

Linker script and memory map

LOAD a.o
LOAD /x/libm.a(model.o)
.text           0x0000000000000000       0x40
 .text.a_rather_long_function_name
                0x0000000000000000       0x38 a.o
                0x0000000000000004                a_rather_long_function_name
 *(.rodata)
 *fill*         0x0000000000000038        0x8 

network_model_sec
                0x0000000020000000      0x200 load address 0x0000000000000040
 network_model_sec
                0x0000000020000000      0x200 /x/libm.a(a/model.o)
                0x0000000020000000                weights
.debug_info     0x0000000000000000      0x900
 .debug_info    0x0000000000000000      0x900 a.o
OUTPUT(x.elf elf32-littlearm)
"""


def test_a_map_says_what_fills_a_region_and_what_is_an_orphan() -> None:
    link_map = parse_map(MAP)
    assert [(p.file, p.bytes) for p in contributors(link_map, "FLASH")] == [
        ("/x/libm.a(a/model.o)", 0x200),
        ("a.o", 0x38),
    ]
    (orphan,) = orphans(link_map, ["SECTIONS { .text : { *(.text*) } /* network_model_sec */ }"])
    assert (orphan.section, orphan.region, orphan.load_region) == (
        "network_model_sec",
        "RAM",
        "FLASH",
    )


def test_every_piece_has_its_place() -> None:
    link_map = parse_map(MAP)
    assert link_map.regions == (
        MapRegion("FLASH", 0, 0x1000, writable=False),
        MapRegion("RAM", 0x20000000, 0x100),
    )
    assert [(s.name, s.address, s.size, s.load) for s in link_map.sections][:2] == [
        (".text", 0, 0x40, None),
        ("network_model_sec", 0x20000000, 0x200, 0x40),
    ]
    code = InputSection(".text.a_rather_long_function_name", 0, 0x38, "a.o")
    fill = InputSection(FILL, 0x38, 8, "")
    model = InputSection("network_model_sec", 0x20000000, 0x200, "/x/libm.a(a/model.o)")
    assert link_map.pieces == (code, fill, model)
    assert (model.short_file, code.short_file) == ("libm.a(model.o)", "a.o")
    assert link_map.within(0x38, 0x40) == [fill]
    assert link_map.dropped == (InputSection(".text.unused", 0, 0x10, "/x/libm.a(a/model.o)"),)


def test_what_could_take_what_does_not_fit() -> None:
    """Zephyr gives one memory two names (FLASH and ITCM); the second is no place to move to.
    Nor is a memory that is only read one for variables."""
    regions = (
        MapRegion("FLASH", 0, 0x100),
        MapRegion("ITCM", 0, 0x100),
        MapRegion("RAM", 0x1000, 0x100),
        MapRegion("DDR", 0x2000, 0x1000),
        MapRegion("ROM", 0x4000, 0x1000, writable=False),
    )
    large = InputSection("ITCM", 0, 0x200, "a.o")
    data = InputSection(".data", 0x1000, 0xC0, "a.o")
    sections = (
        OutputSection("ITCM", 0, 0x200, None, (large,)),
        OutputSection(".data", 0x1000, 0xC0, None, (data,)),
    )
    link_map = LinkMap(regions, sections, ())
    assert [p.section for p in contributors(link_map, "ITCM")] == ["ITCM"]
    assert [p.section for p in contributors(link_map, "FLASH")] == ["ITCM"]
    room = [(r.name, free) for r, free in link_map.room_beside("ITCM")]
    assert room == [("DDR", 0x1000), ("RAM", 0x40)]


def test_debug_sections_take_no_memory() -> None:
    """Their addresses start at 0, where code may be, and they stand behind the last section."""
    link_map = parse_map(MAP)
    assert all(p.section != ".debug_info" for p in link_map.within(0, 0x900))
    assert all(p.section != ".debug_info" for p in contributors(link_map, "RAM"))


def test_what_is_not_a_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.map").write_text("hello")
    with pytest.raises(UsageError, match="not a map of GNU ld"):
        read_map(tmp_path / "x.map")
    with pytest.raises(UsageError, match="cannot read the linker map"):
        read_map(tmp_path / "none.map")


def test_random_damage() -> None:
    """The map of a failed link may be truncated anywhere: it has less in it, and is no error."""
    print(f"seed {SEED}")
    for _, damaged in mutations(MAP.encode(), 1000, SEED):
        link_map = parse_map(damaged.decode("utf-8", "replace"))
        _ = link_map.pieces, list(orphans(link_map, [""])), contributors(link_map, "RAM")
