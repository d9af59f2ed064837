"""Protects that the stand-in workspace refuses what Zephyr's Kconfig refuses, that an option that
stayed n is named as the cause of the undefined symbol that follows, and that the fix links."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.link.build_failure import build_failure
from harness.link.diagnose.explain import explain
from tests.link.workspace import BOARD, WEST
from tests.link.zephyr_plants import FILES, KCONFIG, MODULE, PLANTS
from tests.thorough import cases

_CONF = "CONFIG_FPU=y\nCONFIG_MULTITHREADING=y\nCONFIG_PROBE_BACKEND=y\n"
_MAIN = """\
int probe_execute(char *to, const char *from);
static char to[16], from[16];
int main(void) { return probe_execute(to, from); }
"""


def _quiet(_message: str) -> None:
    pass


def _build(zephyr: Path, root: Path, edits: dict[str, str], *options: str) -> tuple[int, str]:
    files = {**FILES, "prj.conf": _CONF, "src/main.c": _MAIN, **edits}
    for name, text in files.items():
        (root / "probe" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "probe" / name).write_text(text)
    done = subprocess.run(
        [
            WEST,
            "build",
            "-b",
            BOARD,
            "-d",
            str(root / "build"),
            str(root / "probe"),
            "--",
            *options,
        ],
        cwd=zephyr,
        env={**os.environ, "ZEPHYR_BASE": str(zephyr)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


REFUSED = {
    "undefined": (
        "CONFIG_ETHOS_U=y",
        "",
        "no Kconfig file of this build defines ETHOS_U",
        "prj.conf:4",
    ),
    "on_the_command_line": ("", "-DCONFIG_ETHOS_U=y", "defines ETHOS_U", ".conf:1"),
    "of_another_type": ("CONFIG_MAIN_STACK_SIZE=y", "", "of the type int", "prj.conf:4"),
    "without_a_prompt": ("CONFIG_STD_CPP_VERSION=201703", "", "has no prompt", "prj.conf:4"),
    "malformed": ("CONFIG_DMA y", "", "is not an assignment", "prj.conf:4"),
}


@pytest.mark.parametrize(
    "name", cases(*list(REFUSED)[:2], thorough=list(REFUSED)[2:])
)  # test_zephyr_logs has what Zephyr's own says
def test_what_kconfig_refuses_stops_the_build(
    name: str, small_zephyr: Path, tmp_path: Path
) -> None:
    line, option, cause, where = REFUSED[name]
    options = [option] if option else []
    status, log = _build(small_zephyr, tmp_path, {"prj.conf": _CONF + line + "\n"}, *options)
    assert status != 0
    found = build_failure(log)
    assert found is not None
    assert found.kind == "kconfig"
    assert cause in found.cause
    assert where in found.where


def test_an_option_that_stayed_n(small_zephyr: Path, tmp_path: Path) -> None:
    plant = next(p for p in PLANTS if p.name == "stayed_n")
    wrong = {**plant.wrong, "prj.conf": _CONF + "CONFIG_PROBE_IO=y\n"}
    status, log = _build(small_zephyr, tmp_path, wrong)
    assert status != 0
    assert plant.message in log
    assert "PROBE_IO (defined at" in log
    _build(small_zephyr, tmp_path, wrong)  # Kconfig said it once; the build directory knows it
    failure = explain(tmp_path / "build", _quiet).failures[0]
    assert failure.cause_kind == "option_not_taken"
    assert all(words in failure.cause for words in plant.in_cause), failure.cause
    assert all(words in failure.fix for words in plant.in_fix)
    right = {**wrong, "prj.conf": _CONF + "CONFIG_PROBE_IO=y\nCONFIG_DMA=y\n"}
    status, log = _build(small_zephyr, tmp_path, right)
    assert status == 0, log


def test_an_option_that_nobody_set(small_zephyr: Path, tmp_path: Path) -> None:
    """Its source is compiled inside `if(CONFIG_...)`, and prj.conf says nothing of it."""
    io = 'config PROBE_IO\n\tbool "Copies"\n'
    inner = "  if(CONFIG_PROBE_IO)\n    zephyr_library_sources(io_default.c)\n  endif()\n"
    lists = MODULE.replace(" io_default.c", "").replace("endif()", f"{inner}endif()")
    wrong = {"module/Kconfig": KCONFIG + io, "module/CMakeLists.txt": lists}
    status, _ = _build(small_zephyr, tmp_path, wrong)
    assert status != 0
    failure = explain(tmp_path / "build", _quiet).failures[0]
    assert failure.cause_kind == "option_not_set"
    assert "module/CMakeLists.txt:4 compiles it only with CONFIG_PROBE_IO, which is n" in (
        failure.cause
    )
    assert "Set CONFIG_PROBE_IO=y" in failure.fix
    status, log = _build(
        small_zephyr, tmp_path, {**wrong, "prj.conf": _CONF + "CONFIG_PROBE_IO=y\n"}
    )
    assert status == 0, log
