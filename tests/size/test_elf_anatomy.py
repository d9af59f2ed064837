"""What the anatomy of an ELF protects: every allocated byte has a place, a source and a name."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.target import Region
from harness.core.errors import MalformedFile, UsageError
from harness.formats.dwarf import read_units
from harness.formats.linker_map import read_map
from harness.size.anatomy import Anatomy
from harness.size.elf_anatomy import NO_REGION
from harness.size.measure import measure_file

SCRIPT = """
MEMORY { CODE (rx) : ORIGIN = 0x10000000, LENGTH = 64K  RAM (rw) : ORIGIN = 0x30000000, LENGTH = 64K }
ENTRY(main)
SECTIONS {
  .text : { *(.text .text.* .rodata .rodata.*) } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : { *(.data .data.*) } > RAM AT > CODE
  .bss : { *(.bss .bss.* COMMON) } > RAM
  .stack (NOLOAD) : { . += 512; } > RAM
  .pool (NOLOAD) : { *(.pool.*) } > RAM
}
"""  # noqa: E501
SOURCE = """
namespace app { namespace {
int counter = 5;
int table[32];
}
struct Scale { __attribute__((noinline)) int by(int a) const { return a * 3; } };
const char *hello() { return "hello, world"; }
__attribute__((noinline)) void unused() { counter = 9; }
__attribute__((section(".pool.a"))) char pool[1024];
}
extern "C" int main() {
  app::table[app::counter] = app::Scale{}.by(app::counter);
  return app::hello()[app::table[3]] + app::pool[2];
}
"""
REGIONS = (
    Region(name="CODE", origin=0x10000000, size=0x10000),
    Region(name="RAM", origin=0x30000000, size=0x10000),
)


@dataclass(frozen=True)
class Built:
    elf: Path
    map: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return linked(tmp_path_factory.mktemp("elf"), SOURCE)


def linked(folder: Path, source: str) -> Built:
    (folder / "layout.ld").write_text(SCRIPT)
    (folder / "main.cpp").write_text(source)
    result = Built(folder / "program", folder / "program.map")
    run = [
        "arm-none-eabi-g++",
        "-O1",
        "-g",
        "-mcpu=cortex-m55",
        "-ffunction-sections",
        "-fdata-sections",
        "-nostdlib",
        "-T",
        "layout.ld",
        f"-Wl,-Map={result.map}",
        "-Wl,--gc-sections",
        "-o",
        str(result.elf),
        "main.cpp",
    ]
    subprocess.run(run, check=True, timeout=60, cwd=folder)
    return result


def find(anatomy: Anatomy, *words: str) -> int:
    return sum(p.bytes for p in anatomy.parts if all(w in p.path for w in words))


def test_totals_are_those_of_binutils(built: Built) -> None:
    """Per section, our sum is what `arm-none-eabi-size -A` prints, and the map agrees."""
    anatomy = measure_file(built.elf, REGIONS, built.map)
    run = ["arm-none-eabi-size", "-A", built.elf]
    listing = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    sizes = {r[0]: int(r[1]) for r in rows if len(r) == 3 and r[0].startswith(".") and r[2] != "0"}
    ours = {
        name: sum(
            p.bytes for p in anatomy.parts if p.path[2] == name and "load image" not in p.path
        )
        for name in sizes
    }
    assert ours == sizes
    outputs = {s.name: s.size for s in read_map(built.map).sections}
    assert {n: outputs[n] for n in sizes} == sizes


def test_names_files_and_scopes(built: Built) -> None:
    """Functions and objects are under their region, source and namespace."""
    anatomy = measure_file(built.elf, REGIONS, built.map)
    paths = {p.path: p.bytes for p in anatomy.parts}
    scale = [p for p in paths if p[-3:] == ("app", "Scale", "by(int) const")]
    assert [p[:3] for p in scale] == [("CODE", "code", ".text")]
    assert find(anatomy, "RAM", "reserved", "(anonymous namespace)", "table") == 128
    assert find(anatomy, "RAM", "data", "counter") == 4
    assert find(anatomy, "CODE", "load image") == 4
    assert find(anatomy, "CODE", "string literals") == len("hello, world") + 1


def test_reserved_memory_is_apart(built: Built) -> None:
    """A pool or a stack that is in no file does not look like code."""
    anatomy = measure_file(built.elf, REGIONS, built.map)
    assert find(anatomy, "RAM", "reserved", ".pool") == 1024
    assert find(anatomy, "RAM", "reserved", ".stack") == 512


def test_everything_is_attributed(built: Built) -> None:
    assert measure_file(built.elf, REGIONS, built.map).unknown == 0


def test_what_the_linker_dropped(built: Built) -> None:
    dropped = {p.path[-1] for p in measure_file(built.elf, REGIONS, built.map).dropped}
    assert "unused()" in dropped


def test_regions_of_the_map_without_a_target(built: Built) -> None:
    assert {p.path[0] for p in measure_file(built.elf, (), built.map).parts} == {"CODE", "RAM"}


def test_outside_of_every_region(built: Built) -> None:
    """What lies where the target has no memory is named so."""
    anatomy = measure_file(built.elf, REGIONS[:1], built.map)
    assert find(anatomy, NO_REGION) > 1024


def test_sources_from_dwarf_without_a_map(built: Built) -> None:
    anatomy = measure_file(built.elf, REGIONS)
    assert find(anatomy, "CODE", "main.cpp", "by(int) const") > 0


def test_map_of_another_link_is_refused(built: Built, tmp_path: Path) -> None:
    """A stale map would attribute every byte to the wrong function."""
    stale = tmp_path / "stale.map"
    text = built.map.read_text()
    stale.write_text(text.replace("\n.bss            0x3", "\n.bss            0x4"))
    assert stale.read_text() != text
    with pytest.raises(UsageError, match="map of another link"):
        measure_file(built.elf, REGIONS, stale)


def test_not_a_map(built: Built, tmp_path: Path) -> None:
    (tmp_path / "x.map").write_text("hello")
    with pytest.raises(UsageError, match="not a map of GNU ld"):
        measure_file(built.elf, REGIONS, tmp_path / "x.map")


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        (20, "do not start with an ELF header"),
        (60, "table of section headers ends"),
        (-100, "ends 100 bytes past"),
    ],
)
def test_truncated(built: Built, tmp_path: Path, keep: int, says: str) -> None:
    """An ELF that breaks off says where."""
    file = tmp_path / "cut"
    file.write_bytes(built.elf.read_bytes()[:keep])
    with pytest.raises(MalformedFile, match=says) as caught:
        measure_file(file)
    assert "offset" in caught.value.facts


@pytest.mark.parametrize("way", ["zlib-gabi", "zlib-gnu"])
def test_a_section_that_unpacks_to_much_is_not_unpacked(
    built: Built, tmp_path: Path, way: str
) -> None:
    """900 KB of an ELF took 1.8 GB."""
    elf, plain = tmp_path / "packed.elf", tmp_path / "zeros"
    plain.write_bytes(bytes(4 << 20))
    for words in (
        ["--strip-debug", "--add-section", f".debug_info={plain}", str(built.elf)],
        [f"--compress-debug-sections={way}", str(elf)],
    ):
        subprocess.run(["arm-none-eabi-objcopy", *words, str(elf)], check=True)
    units, note = read_units(elf)
    assert not units.spans
    assert note is not None
    assert "debug_info: " in note
