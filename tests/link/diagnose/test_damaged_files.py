"""Protects a log whose folder holds files that are damaged: the log is explained all the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.formats import archive as ar
from harness.link.diagnose.explain import explain
from harness.link.failure import FailureKind
from harness.system.progress import silent

LOG = (
    "arm-none-eabi-gcc -mcpu=cortex-m55 -nostdlib main.o libx.a -o x.elf\n"
    "ld: main.o: in function `entry':\nmain.c:1: undefined reference to `missing'\n"
    "collect2: error: ld returned 1 exit status\n"
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """An object that needs a symbol, and an archive of another one."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "main.c").write_text("int missing(int); int entry(int a) { return missing(a); }\n")
    (folder / "x.c").write_text("int x(int a) { return a; }\n")
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-c", "main.c", "x.c"], cwd=folder, check=True
    )
    ar.write_archive(folder / "libx.a", [("x.o", (folder / "x.o").read_bytes(), ["x"])])
    return (folder / "main.o").read_bytes(), (folder / "libx.a").read_bytes()


def _explained(folder: Path, main: bytes, archive: bytes) -> None:
    for name, content in (("main.o", main), ("libx.a", archive), ("libother.a", archive)):
        (folder / name).write_bytes(content)
    (folder / "log").write_text(LOG)
    (failure,) = explain(folder / "log", silent).failures
    assert (failure.kind, failure.symbol) == (FailureKind.UNDEFINED_SYMBOL, "missing")
    assert failure.cause


@pytest.mark.parametrize("eighth", range(1, 8))
def test_a_truncated_archive_or_object(
    parts: tuple[bytes, bytes], tmp_path: Path, eighth: int
) -> None:
    main, archive = parts
    _explained(tmp_path, main, archive[: len(archive) * eighth // 8])
    _explained(tmp_path, main[: len(main) * eighth // 8], archive)


def test_relocations_that_break_off(parts: tuple[bytes, bytes], tmp_path: Path) -> None:
    """The symbols are sound, so that the object is one; where it needs them is not known."""
    main, archive = parts
    at = main.index(b".rel.text")
    assert at > 0
    damaged = bytearray(main)
    start = int.from_bytes(main[32:36], "little")
    for row in range(start, len(main), 40):
        if int.from_bytes(main[row + 4 : row + 8], "little") == 9:  # SHT_REL
            damaged[row + 20] ^= 1  # the size of the section
    _explained(tmp_path, bytes(damaged), archive)


@pytest.mark.parametrize("text", ["", "[{", "[1]", '{"a": 1}', "[" * 5000, "\udcff"])
def test_a_compilation_database_that_is_none(
    parts: tuple[bytes, bytes], tmp_path: Path, text: str
) -> None:
    database = tmp_path / "compile_commands.json"
    database.write_text(text, errors="surrogateescape")
    _explained(tmp_path, *parts)
    database.write_text(json.dumps([{"directory": str(tmp_path), "file": "main.c"}]))
    _explained(tmp_path, *parts)


def test_a_response_file_that_is_none(parts: tuple[bytes, bytes], tmp_path: Path) -> None:
    (tmp_path / "more").write_bytes(b'"\xff no end of the quotes')
    for name, content in zip(("main.o", "libx.a"), parts, strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "log").write_text(LOG.replace("-nostdlib", "-nostdlib @more"))
    assert explain(tmp_path / "log", silent).failures


def test_nobody_waits_for_a_fifo(parts: tuple[bytes, bytes], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.a")
    os.mkfifo(tmp_path / "pipe.c")
    _explained(tmp_path, *parts)
