"""Where a build stopped, in which image, and logs in other shapes than UTF-8."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from harness.cli.link import print_explanation
from harness.core.errors import UsageError
from harness.link.diagnose.explain import explain

LINKED = "[8/9] Linking C executable zephyr/zephyr.elf\n"
STOPPED = "ninja: build stopped: subcommand failed.\n"
UNDEFINED = (
    "[5/9] Performing build step for 'mcuboot'\n"
    "ld: main.c.obj:(.text+0x2): undefined reference to `boot_go'\n"
    "collect2: error: ld returned 1 exit status\n"
)
ASSEMBLER = (
    "FAILED: k/CMakeFiles/kernels.dir/op_rem.cpp.obj\n"
    "/tmp/ccXYZ.s: Assembler messages:\n"
    "/tmp/ccXYZ.s:35: Error: bad type in SIMD instruction -- `vcvtne.f64.f32 d0,s0'\n"
)
LOGS = {
    "objcopy after the link": (
        LINKED + "FAILED: zephyr/zephyr.uf2\nobjcopy: error: no room\n" + STOPPED,
        "stopped after a link",
    ),
    "a compiler": ("a.c:3:1: error: x\n" + STOPPED, "stopped before its link"),
    "a target that is run": (
        "-- west build: running target run\n/bin/sh: 1: ARMFVP-NOTFOUND: not found\n" + STOPPED,
        "stopped at its target run: CMake did not find the program ARMFVP",
    ),
    "another image": (UNDEFINED, "In the image mcuboot:"),
    "an assembler's error": (ASSEMBLER + STOPPED, "The source is op_rem.cpp"),
    "a sample outside of the workspace": (
        "/w/executorch/zephyr/samples/hello/prj.conf:8: warning: attempt to assign the value 'y' "
        "to the undefined symbol EXECUTORCH\n\nerror: Aborting due to Kconfig warnings\n",
        "-DEXTRA_ZEPHYR_MODULES=/w/executorch",
    ),
    "a warning that is fatal": (
        "ld: warning: app.elf has a LOAD segment with RWX permissions\n"
        "collect2: error: ld returned 1 exit status\n",
        "takes warnings for errors",
    ),
    "any other warning that is fatal": (
        "/x/ld: warning: something of a later version\n"
        "collect2: error: ld returned 1 exit status\n",
        "takes warnings for errors",
    ),
    "a region that no MEMORY has": (
        "ld:fw.ld:9: warning: memory region `SRAM' not declared\n"
        "ld: app.elf section `.data' will not fit in region `RAM'\n"
        "collect2: error: ld returned 1 exit status\n",
        "Add SRAM to MEMORY",
    ),
    "secure code without a place for its veneers": (
        "/x/ld: no address assigned to the veneers output section .gnu.sgstubs\n"
        "collect2: error: ld returned 1 exit status\n",
        "Add `.gnu.sgstubs : { . = ALIGN(32); *(.gnu.sgstubs*) } > REGION`",
    ),
    "a message that no rule knows": (
        "/usr/bin/ld: CMakeFiles/fw.dir/a.c.obj: wholly new complaint\n"
        "collect2: error: ld returned 1 exit status\n",
        "No rule knows this message",
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_a_log_says(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, wanted = LOGS[name]
    log = tmp_path / "build.log"
    log.write_text(text)
    print_explanation(explain(log, lambda _: None))
    assert wanted in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read(encoding: str, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_bytes(UNDEFINED.encode(encoding))
    assert explain(log, lambda _: None).failures[0].symbol == "boot_go"


def test_a_compressed_log_is_named_as_such(tmp_path: Path) -> None:
    log = tmp_path / "build.log.gz"
    log.write_bytes(gzip.compress(UNDEFINED.encode()))
    with pytest.raises(UsageError, match="is compressed"):
        explain(log, lambda _: None)


def test_a_build_tree_that_was_moved_is_refused(tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_CACHEFILE_DIR:INTERNAL=/elsewhere/build\n")
    with pytest.raises(UsageError, match="was moved or copied: CMake configured it as /elsewhere"):
        explain(tmp_path, lambda _: None)
