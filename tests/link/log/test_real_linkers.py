"""Protects the grammar against the linkers that are installed: what they really print is read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.link.log.parse import parse

SOURCES = {
    "a.cpp": "int f(int); int x = 1; int main() { return f(x); }\n",
    "b.cpp": "int x = 2; char big[9000] = {1};\n",
}
SCRIPT = """
MEMORY { CODE (rx) : ORIGIN = 0x1000, LENGTH = 4K  RAM (rw) : ORIGIN = 0x20000, LENGTH = 4K }
SECTIONS { .text : { *(.text*) } >CODE  .data : { *(.data*) } >RAM  .bss : { *(.bss*) } >RAM }
"""
LINKERS = {
    "arm-none-eabi-ld": "arm-none-eabi-g++",
    "ld.bfd": "g++",
    "ld.lld": "g++",
    "ld.lld-14": "g++",
}


@pytest.fixture(params=LINKERS)
def said(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    linker, compiler = request.param, LINKERS[request.param]
    if shutil.which(linker) is None:
        pytest.skip(f"{linker} is not installed")
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "x.ld").write_text(SCRIPT)
    for command in (
        [compiler, "-fno-pic", "-fno-exceptions", "-c", *SOURCES],
        [linker, "a.o", "b.o", "-lnowhere", "-o", "x"],
        [linker, "a.o", "b.o", "-o", "x"],
        [linker, "a.o", "-o", "x"],
        [linker, "-T", "x.ld", "b.o", "-e", "x", "-o", "x"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        (tmp_path / "log").open("a").write(done.stderr)
    return (tmp_path / "log").read_text()


def test_what_an_installed_linker_prints_is_read(said: str) -> None:
    found = {(f.kind, f.symbol or f.region) for f in parse(said).failures}
    assert ("undefined_symbol", "f(int)") in found
    assert ("duplicate_symbol", "x") in found
    assert ("missing_library", "-lnowhere") in found
    assert ("region_overflow", "RAM") in found
