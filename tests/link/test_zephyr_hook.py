"""Protects the Ethos-U backend's copy hook in the Zephyr module: it can be overridden in both link
passes on both boards, the override is called for every copy, and without the backend there is
none. In the stand-in workspace; never against Zephyr itself. test_zephyr_run.py runs an
application's own override."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.link.check import check
from harness.system.paths import executorch_package
from tests.link.delegate_program import needed_copies
from tests.link.recorded_programs import PROGRAMS, counted
from tests.link.test_own_builds import LISTS, forgetful_kernels
from tests.link.test_runner_hook import CHECKS, HOOK
from tests.link.workspace import WEST
from tools.clone import project_root

BOARD_300, BOARD_320 = "mps3/corstone300/fvp", "mps4/corstone320/fvp"
_ETHOSU = "-DCONFIG_HIL_ETHOSU=y"
_REGISTERS = (_ETHOSU, "-DCONFIG_HIL_ETHOSU_BASE=0x58102000")
_DOORBELL = (_ETHOSU, "-DCONFIG_HIL_ETHOSU_DOORBELL=y")
_SAMPLE = project_root() / "targets" / "runner" / "ports" / "zephyr" / "sample"


def _quiet(_message: str) -> None:
    pass


def _west_build(zephyr: Path, root: Path, board: str, *options: str) -> Path:
    kernels = forgetful_kernels(
        root, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp")
    )
    done = subprocess.run(
        [
            WEST,
            "build",
            "-b",
            board,
            "-d",
            str(root / "build"),
            str(_SAMPLE),
            "--",
            f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}",
            f"-DHIL_KERNELS_DIR={kernels}",
            "-DBUILD_TESTING=OFF",
            *options,
        ],
        cwd=zephyr,
        env={**os.environ, "ZEPHYR_BASE": str(zephyr)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "build"


def _assert_overridable_in_both_passes(build: Path) -> None:
    found = check(build, [HOOK], _quiet)
    assert found.holds, found.text()
    for program in ("zephyr/zephyr_pre0.elf", "zephyr/zephyr.elf"):
        assert {f.check for f in found.findings if f.program == program} == CHECKS


@pytest.mark.thorough
def test_the_default_can_be_overridden_in_both_passes(small_zephyr: Path, tmp_path: Path) -> None:
    _assert_overridable_in_both_passes(_west_build(small_zephyr, tmp_path, BOARD_320, *_REGISTERS))


@pytest.mark.thorough
def test_the_override_sees_every_copy(small_zephyr: Path, tmp_path: Path) -> None:
    """Of programs that use fast scratch, and of those that do not."""
    fast = ("-DCONFIG_HIL_ETHOSU_FAST_SCRATCH_BYTES=393216", "-DHIL_FAST_SCRATCH_PLACE=DDR")
    counting = (*_DOORBELL, "-DCONFIG_HIL_ETHOSU_COUNT_IO=y", *fast)
    build = _west_build(small_zephyr, tmp_path, BOARD_300, *counting)
    _assert_overridable_in_both_passes(build)
    for name, what in PROGRAMS.items():
        run = what.run(build / "zephyr" / "zephyr.elf", tmp_path / name)
        assert run.status == 0, run.console
        assert counted(run.console) == 2 * needed_copies(what.program()), name
        assert run.outputs == (what.expected(),) * 2, name


@pytest.mark.thorough
def test_without_the_backend_there_is_no_hook(small_zephyr: Path, tmp_path: Path) -> None:
    found = check(_west_build(small_zephyr, tmp_path, BOARD_300), [HOOK], _quiet)
    assert {f.check for f in found.findings} == {"in_program"}
    assert not found.holds
