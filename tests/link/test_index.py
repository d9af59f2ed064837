"""Protects what is known of the uses of a symbol in the files of a link."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.formats.elf import read_elf
from harness.link.index import uses_in


def test_a_use_has_function_section_and_relocation(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int elsewhere(int); int entry(int a) { return elsewhere(a); }\n")
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-O0", "-ffunction-sections", "-c", "a.c"],
        cwd=tmp_path,
        check=True,
    )
    (use,) = uses_in(read_elf(tmp_path / "a.o"), "elsewhere")
    assert (use.function, use.section) == ("entry", ".text.entry")
    assert use.relocation == "R_ARM_THM_CALL"
