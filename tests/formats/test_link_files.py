"""Protects what reads and writes objects, archives and maps, against binutils."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.formats import archive as ar
from harness.formats.demangle import base, demangled, mangled_base
from harness.formats.elf_object import ElfObject, NotAnObject, read_object
from harness.formats.elf_writer import NewSymbol, write_object
from harness.formats.linker_map import contributors, orphans, parse_map

SOURCE = """
int shared; __attribute__((weak)) int soft(int a) { return a; }
__attribute__((visibility("hidden"))) int kept(void) { return 1; }
static int own(int a) { return a + 1; }
int elsewhere(int); int entry(int a) { return elsewhere(own(a)) + shared; }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("files")
    (directory / "a.c").write_text(SOURCE)
    for name, abi in (("hard", "hard"), ("soft", "soft")):
        subprocess.run(
            ["arm-none-eabi-gcc", "-mcpu=cortex-m55", f"-mfloat-abi={abi}", "-fcommon", "-O0",
             "-ffunction-sections", "-c", "a.c", "-o", f"{name}.o"], cwd=directory, check=True,
        )  # fmt: skip
    return directory


def test_symbols_are_those_of_nm(compiled: Path) -> None:
    said = subprocess.run(["arm-none-eabi-nm", "-g", "hard.o"], cwd=compiled, capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    expected = sorted(line.split()[-1] for line in said.splitlines())
    unit = read_object(compiled / "hard.o")
    assert sorted(s.name for s in unit.globals) == expected
    binding = {s.name: s.binding for s in unit.symbols if s.defined}
    assert [binding[n] for n in ("soft", "kept", "own", "entry", "shared")] == [
        "weak", "hidden", "static", "strong", "common",
    ]  # fmt: skip


def test_what_is_no_object_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_text("no ELF")
    with pytest.raises(NotAnObject, match="not an ELF file"):
        read_object(tmp_path / "x.o")
    cut = write_object([NewSymbol("f", "def", True)])[:60]
    assert ElfObject("cut.o", cut).symbols == ()


@pytest.mark.parametrize("options", ["rcs", "rcsT"])
def test_archives_are_those_of_ar(compiled: Path, tmp_path: Path, options: str) -> None:
    names = ["a.o", "a_member_with_a_long_name.o"]
    for name in names:
        (tmp_path / name).write_bytes((compiled / "hard.o").read_bytes())
    subprocess.run(["arm-none-eabi-ar", options, "libx.a", *names], cwd=tmp_path, check=True)
    found = ar.members(tmp_path / "libx.a")
    assert [m.name for m in found] == names
    assert found[1].data == (compiled / "hard.o").read_bytes()
    assert "soft" in ar.index(tmp_path / "libx.a")


def test_our_archives_are_read_by_ar(tmp_path: Path) -> None:
    content = write_object([NewSymbol("f", "def", True)])
    ar.write_archive(tmp_path / "libx.a", [("a.o", content, ["f"]), ("b.o", b"odd", [])])
    said = subprocess.run(["arm-none-eabi-ar", "t", "libx.a"], cwd=tmp_path, capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    assert said.split() == ["a.o", "b.o"]
    assert ar.index(tmp_path / "libx.a") == ("f",)


def test_names_in_both_directions() -> None:
    assert demangled(["_ZN2ns1fEi", "plain"]) == {"_ZN2ns1fEi": "ns::f(int)", "plain": "plain"}
    assert [mangled_base(n) for n in ("_ZN2ns1fEi", "_Z4loadv", "plain")] == ["f", "load", None]
    assert base("std::vector<int>::push_back(int const&)") == "push_back"


MAP = """\
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x0000000000000000 0x0000000000001000 xr
RAM              0x0000000020000000 0x0000000000000100 rw
*default*        0x0000000000000000 0xffffffffffffffff

Linker script and memory map

.text           0x0000000000000000       0x40
 .text.a_rather_long_function_name
                0x0000000000000000       0x40 a.o

network_model_sec
                0x0000000020000000      0x200 load address 0x0000000000000040
 network_model_sec
                0x0000000020000000      0x200 model.o
"""


def test_a_map_says_what_fills_a_region_and_what_is_an_orphan() -> None:
    link_map = parse_map(MAP)
    assert [(p["file"], p["bytes"]) for p in contributors(link_map, "FLASH")] == [
        ("model.o", 0x200), ("a.o", 0x40),
    ]  # fmt: skip
    (orphan,) = orphans(link_map, ["SECTIONS { .text : { *(.text*) } /* network_model_sec */ }"])
    assert (orphan["section"], orphan["region"], orphan["load_region"]) == (
        "network_model_sec", "RAM", "FLASH",
    )  # fmt: skip
