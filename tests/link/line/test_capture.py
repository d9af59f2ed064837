"""Protects where a link command of a log is found to have been run."""

from __future__ import annotations

from pathlib import Path

from harness.link.line.capture import commands_in_log
from harness.link.smaller.candidate import NewSymbol, write_object


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
    (found,) = commands_in_log(log, tmp_path)
    assert found.directory == build
    alone = f"/usr/bin/arm-none-eabi-gcc -o a.elf {build}/libc.a\n"
    assert [command.directory for command in commands_in_log(alone, tmp_path)] == [tmp_path]
