"""Protects what reads and writes objects, archives, maps and link lines, against binutils."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.formats import archive as ar
from harness.formats.demangle import base, demangled, mangled_base
from harness.formats.elf_object import ElfObject, NotAnObject, read_object
from harness.formats.elf_writer import NewSymbol, write_object
from harness.formats.linker_map import contributors, orphans, parse_map
from harness.link.line.command import LinkerCall, commands_in, expanded, link_command, understand
from harness.link.model.expression import assignment, in_script
from harness.link.model.index import load, uses_in
from harness.link.model.resolution import ADDRESSES, SIZES, Assign, Group, Unit
from harness.link.smaller.ddmin import ddmin
from harness.link.why.abi import attributes, difference
from harness.link.why.tree import Tree

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


def test_a_use_has_function_section_and_relocation(compiled: Path) -> None:
    (use,) = uses_in(read_object(compiled / "hard.o"), "elsewhere")
    assert (use.function, use.section) == ("entry", ".text.entry")
    assert use.relocation == "R_ARM_THM_CALL"


def test_the_float_abi_differs(compiled: Path) -> None:
    hard, soft = (attributes(read_object(compiled / f"{n}.o")) for n in ("hard", "soft"))
    assert difference(hard, soft) == (
        "how float arguments are passed", "hard (VFP registers)", "soft (core registers)"
    )  # fmt: skip
    assert difference(hard, hard) is None


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


def test_a_link_line_is_understood(tmp_path: Path) -> None:
    for name in ("a.o", "libx.a", "libz.a"):
        (tmp_path / name).write_bytes(ar.MAGIC if name.endswith(".a") else b"")
    words = ["ld", "-o", "x.elf", "-T", "x.ld", "-L", ".", "a.o", "--whole-archive", "libx.a",
             "--no-whole-archive", "--start-group", "-lz", "-lnone", "--end-group", "--wrap=w",
             "-u", "u", "--defsym", "d=1"]  # fmt: skip
    line = understand(LinkerCall(tuple(words), tmp_path))
    assert [(i.word, i.whole, i.group, i.path is not None) for i in line.inputs] == [
        ("a.o", False, 0, True), ("libx.a", True, 0, True), ("-lz", False, 1, True),
        ("-lnone", False, 1, False),
    ]  # fmt: skip
    assert (line.wrap, line.undefined) == (("w",), ("u",))
    assert line.defined == ((18, "d", "1"),)
    assert line.script_at == 3
    assert line.scripts == (tmp_path / "x.ld",)


def test_response_files_launchers_and_shell_lines(tmp_path: Path) -> None:
    (tmp_path / "o.rsp").write_text('a.o "b c.o"\n')
    assert expanded(["gcc", "@o.rsp"], tmp_path) == ("gcc", "a.o", "b c.o")
    found = list(commands_in(": && ccache X=1 gcc a.o -o x.elf && cd d && :"))
    assert found == [("gcc", "a.o", "-o", "x.elf"), ("cd", "d")]
    assert link_command(found[0], tmp_path, "log") is not None
    assert link_command(["gcc", "-c", "a.c", "-o", "a.o"], tmp_path, "log") is None
    assert link_command(["cmake", "-o", "x", "a.o"], tmp_path, "log") is None


def test_names_in_both_directions() -> None:
    assert demangled(["_ZN2ns1fEi", "plain"]) == {"_ZN2ns1fEi": "ns::f(int)", "plain": "plain"}
    assert [mangled_base(n) for n in ("_ZN2ns1fEi", "_Z4loadv", "plain")] == ["f", "load", None]
    assert base("std::vector<int>::push_back(int const&)") == "push_back"


def test_ddmin_finds_the_smallest_part() -> None:
    tried = []

    def still(part: object) -> bool:
        tried.append(part)
        return {3, 17} <= set(part)  # type: ignore[call-overload]

    assert ddmin(list(range(40)), still) == [3, 17]
    assert len(tried) < 100
    assert ddmin([1, 2], lambda _part: True) == []


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


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("__attribute__((weak)) void hook(void *to,\n    int n) {\n}\n", True),
        ('extern "C" int hook(int a) noexcept { return a; }\n', None),
        ("ET_WEAK int hook(int a) {\n return a; }\n", True),
        ("int hook(int a)\n{\n return a; }\n", False),
        ("int hook(int a);\nint x(void) { return hook(1); }\n", None),
        ("int hook[4] = {1};\n", False),
    ],
)
def test_definitions_are_told_from_calls(tmp_path: Path, text: str, weak: bool | None) -> None:
    (tmp_path / "a.c").write_text(text)
    found = Tree(tmp_path).in_sources("hook")
    if weak is None:
        assert all(not f.weak for f in found)
        return
    assert [f.weak for f in found] == [weak]


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("0x1000", Assign("a")), (". + 4K", Assign("a")), ("b", Assign("a", ("b",))),
        ("(b + c) * 2", Assign("a", ("b", "c"))), 
        ("SIZEOF(.text) + b", Assign("a", ("b",), layout=SIZES)),
        ("ORIGIN(RAM) + LENGTH(RAM)", Assign("a")), ("ALIGN(b, 8)", Assign("a", ("b",))),
        ("ADDR(.data)", Assign("a", layout=ADDRESSES)),
        ("ADDR(.data) + SIZEOF(.data)", Assign("a", layout=ADDRESSES)),
        ("SIZEOF_HEADERS", Assign("a", layout=SIZES)),
        ("DEFINED(b) ? b : 0", None), ("a + 1", None), ("b ? c : d", None), ("unheard(b)", None),
    ],
)  # fmt: skip
def test_the_value_of_an_assignment(value: str, known: Assign | None) -> None:
    assert assignment("a", value) == known


def test_the_assignments_of_a_script() -> None:
    text = """
    MEMORY { FLASH (rx) : ORIGIN = 0x0, LENGTH = 64K } /* end = 3; */
    ENTRY(go)
    first = 4; second = first;third=1;
    SECTIONS { .text : { start = .; *(.text*) . = ALIGN(4); PROVIDE(stop = ABSOLUTE(.)); } >FLASH =0
      PROVIDE_HIDDEN (__size = SIZEOF(.text)); HIDDEN(kept = 2);
      .stack : { . += 4; } counter += 1; maybe = DEFINED(first) ? 1 : 2; }
    ASSERT(first == 4, "no")
    """
    assert list(in_script(text)) == [
        ("first", Assign("first")), ("second", Assign("second", ("first",))),
        ("third", Assign("third")), ("start", Assign("start")),
        ("stop", Assign("stop", provide=True)),
        ("__size", Assign("__size", provide=True, layout=SIZES)), ("kept", Assign("kept")),
        ("counter", None), ("maybe", None),
    ]  # fmt: skip


def test_the_job_has_the_assignments_where_they_stand(tmp_path: Path) -> None:
    for name in ("a.o", "b.o"):
        (tmp_path / name).write_bytes(write_object([NewSymbol(name[0], "def")]))
    (tmp_path / "x.ld").write_text("top = 1; odd = DEFINED(a);\n")
    words = ["ld", "-T", "x.ld", "a.o", "--start-group", "b.o", "--defsym=c=b", "--end-group"]
    index = load(understand(LinkerCall(tuple(words), tmp_path)))
    assert index.not_modelled == ("odd",)
    top, first, group = index.job.items
    assert top == Assign("top")
    assert isinstance(first, Unit)
    assert isinstance(group, Group)
    assert group.items[1] == Assign("c", ("b",))
    assert index.prediction.links
