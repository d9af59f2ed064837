"""Protects where a link command of a log is found to have been run."""

from __future__ import annotations

from pathlib import Path

from harness.link.build import commands_in_log
from harness.link.log.lines import lines_of
from tests.link.arm_object import NewSymbol, write_object


def test_an_absolute_path_does_not_tell_where_a_link_was_run(tmp_path: Path) -> None:
    """Zephyr's link names picolibc's archive so; with the log's own folder for that of the build,
    nothing was known of the build."""
    build = tmp_path / "build"
    (build / "app").mkdir(parents=True)
    (build / "app" / "main.o").write_bytes(write_object([NewSymbol("main", "def", function=True)]))
    (build / "libc.a").write_bytes(b"!<arch>\n")
    log = (
        f"-- Build files have been written to: {build}\n"
        f": && /usr/bin/arm-none-eabi-gcc app/main.o -o a.elf {build}/libc.a && :\n"
    )
    (found,) = commands_in_log(lines_of(log), tmp_path)
    assert found.directory == build
    alone = f"/usr/bin/arm-none-eabi-gcc -o a.elf {build}/libc.a\n"
    assert [command.directory for command in commands_in_log(lines_of(alone), tmp_path)] == [
        tmp_path
    ]


def test_a_link_behind_a_compilation_in_one_line_is_found(tmp_path: Path) -> None:
    """Lines that only compile are skipped unread; this one does both."""
    (tmp_path / "a.o").write_bytes(write_object([NewSymbol("main", "def", function=True)]))
    compiles = "arm-none-eabi-gcc -c a.c -o a.o"
    (command,) = commands_in_log(
        lines_of(f"{compiles}\n{compiles} && arm-none-eabi-gcc a.o -o x.elf\n"), tmp_path
    )
    assert command.output == "x.elf"
