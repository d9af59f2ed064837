"""Protects how a link's command line is understood: inputs in order, response files, launchers."""

from __future__ import annotations

from pathlib import Path

from harness.formats import archive as ar
from harness.link.command import LinkerCall, commands_in, expanded, link_command


def test_a_link_line_is_understood(tmp_path: Path) -> None:
    for name in ("a.o", "libx.a", "libz.a"):
        (tmp_path / name).write_bytes(ar.MAGIC if name.endswith(".a") else b"")
    words = [
        "ld",
        "-o",
        "x.elf",
        "-T",
        "x.ld",
        "-L",
        ".",
        "a.o",
        "--whole-archive",
        "libx.a",
        "--no-whole-archive",
        "--start-group",
        "-lz",
        "-lnone",
        "--end-group",
        "--wrap=w",
        "-u",
        "u",
        "--defsym",
        "d=1",
    ]
    line = LinkerCall(tuple(words), tmp_path)
    assert [(i.word, i.whole, i.group, i.path is not None) for i in line.inputs] == [
        ("a.o", False, 0, True),
        ("libx.a", True, 0, True),
        ("-lz", False, 1, True),
        ("-lnone", False, 1, False),
    ]
    assert line.scripts == (tmp_path / "x.ld",)


def test_response_files_launchers_and_shell_lines(tmp_path: Path) -> None:
    (tmp_path / "o.rsp").write_text('a.o "b c.o"\n')
    assert expanded(["gcc", "@o.rsp"], tmp_path) == ("gcc", "a.o", "b c.o")
    found = list(commands_in(": && ccache X=1 gcc a.o -o x.elf && cd d && :"))
    assert found == [("gcc", "a.o", "-o", "x.elf"), ("cd", "d")]
    assert link_command(found[0], tmp_path) is not None
    assert link_command(["gcc", "-c", "a.c", "-o", "a.o"], tmp_path) is None
    assert link_command(["cmake", "-o", "x", "a.o"], tmp_path) is None
