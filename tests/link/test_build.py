"""Protects where a link command of a log is found to have been run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.link.build import commands_in_log, failing_link
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


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs the compiler")
def test_a_link_that_the_compilers_plugin_completes_does_not_fail(tmp_path: Path) -> None:
    """An archive of code for link-time optimisation, and no -flto on the link line: the linker by
    itself refuses it, as it was when the build ended well."""
    (tmp_path / "main.c").write_text("int vendor(void);\nint main(void) { return vendor(); }\n")
    (tmp_path / "vendor.c").write_text("int vendor(void) { return 1; }\n")
    gcc = "arm-none-eabi-gcc -mcpu=cortex-m55"
    for command in (
        f"{gcc} -c main.c -o main.o",
        f"{gcc} -flto -c vendor.c -o vendor.o",
        "arm-none-eabi-gcc-ar rcs libvendor.a vendor.o",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    link = tmp_path / "CMakeFiles" / "app.dir" / "link.txt"
    link.parent.mkdir(parents=True)
    line = f"{gcc} -nostdlib -Wl,-emain -Wl,-Map=app.map main.o {{archive}} -o app.elf\n"
    link.write_text(line.format(archive="libvendor.a"))
    assert failing_link(tmp_path) is None
    assert not (tmp_path / "app.map").exists()  # nothing is written into the directory
    link.write_text(line.format(archive=""))
    failed = failing_link(tmp_path)
    assert failed is not None
    assert "undefined reference to `vendor'" in failed.text


@pytest.mark.skipif(not shutil.which("arm-none-eabi-ld"), reason="needs the linker")
def test_a_message_names_the_program_as_the_build_does(tmp_path: Path) -> None:
    """Not where the link was done again, which is another place each time."""
    (tmp_path / "a.o").write_bytes(write_object([NewSymbol("main", "def", function=True)]))
    (tmp_path / "x.ld").write_text(
        "MEMORY { ROM (rx) : ORIGIN = 0, LENGTH = 1 }\nSECTIONS { .text : { *(.text*) } > ROM }\n"
    )
    link = tmp_path / "CMakeFiles" / "app.dir" / "link.txt"
    link.parent.mkdir(parents=True)
    link.write_text("arm-none-eabi-ld -T x.ld -e main a.o -o app.elf\n")
    failed = failing_link(tmp_path)
    assert failed is not None
    assert "ld: app.elf section `.text' will not fit in region `ROM'" in failed.text
