"""Protects how a link's command line is understood: inputs in order, response files, launchers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import InfraError, ToolMissing
from harness.formats import archive as ar
from harness.formats.elf import read_elf
from harness.link.command import LinkerCall, commands_in, expanded, link_command, run


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


def test_the_compiler_of_a_link_makes_functions_that_only_have_to_exist(tmp_path: Path) -> None:
    """Also under names that no C function can have."""
    made = tmp_path / "stubs.o"
    call = LinkerCall(("ld",), tmp_path, "arm-none-eabi-gcc", ("-mcpu=cortex-m55",))
    call.compile_functions(["memcpy", "_ZN1a1bEv", "z.constprop.0"], made)
    defined = {symbol.name for symbol in read_elf(made).globals if symbol.defined}
    assert defined == {"memcpy", "_ZN1a1bEv", "z.constprop.0"}
    assert [path.name for path in tmp_path.iterdir()] == ["stubs.o"]
    with pytest.raises(InfraError, match=r"no object could be compiled: .*cortex-m99"):
        replace(call, machine=("-mcpu=cortex-m99",)).compile_functions(["a"], made)
    with pytest.raises(InfraError, match="does not go through a compiler"):
        replace(call, driver=None).compile_functions(["a"], made)


def test_the_address_of_a_section_is_not_a_script(tmp_path: Path) -> None:
    """-Ttext begins as -T does."""
    call = LinkerCall(("ld", "-Ttext=0x0", "-Tx.ld", "a.o"), tmp_path)
    assert call.scripts == (tmp_path / "x.ld",)


def test_a_tool_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="no-such-ld is not installed"):
        LinkerCall(("no-such-ld", "a.o"), tmp_path).run()


def test_a_tool_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.link.command._TIMEOUT_S", 0.2)
    with pytest.raises(InfraError, match="sleep: no end after"):
        run(["sleep", "30"], Path("/"))


def test_what_a_tool_prints_comes_with_whether_it_failed() -> None:
    assert run(["sh", "-c", "echo said"], Path("/")) == ("said\n", 0)
    assert run(["sh", "-c", "echo said >&2; exit 7"], Path("/")) == ("said\n", 1)
    with pytest.raises(ToolMissing):
        run(["no-such-ld"], Path("/"))
