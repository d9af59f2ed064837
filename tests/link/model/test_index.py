"""Protects what is known of a link's files: uses of a symbol, and assignments where they stand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.formats.elf import read_elf
from harness.link.line.command import LinkerCall, understand
from harness.link.model.index import assignment, in_script, load, uses_in
from harness.link.model.resolution import ADDRESSES, SIZES, Assign, Group, Unit
from harness.link.smaller.candidate import NewSymbol, write_object


def test_a_use_has_function_section_and_relocation(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int elsewhere(int); int entry(int a) { return elsewhere(a); }\n")
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-O0", "-ffunction-sections", "-c", "a.c"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    (use,) = uses_in(read_elf(tmp_path / "a.o"), "elsewhere")
    assert (use.function, use.section) == ("entry", ".text.entry")
    assert use.relocation == "R_ARM_THM_CALL"


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
