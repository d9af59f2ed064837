"""Protects that a board which the workspace does not have, and a CPU which the compiler does not
know, are told before anything is exported, and that a board may be another project's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.firmware.zephyr.workspace import require_workspace
from tests.link.workspace import REAL, copy_workspace, enter, needs_real_zephyr

BOARD_320 = "mps4/corstone320/fvp"


@pytest.fixture
def zephyr(small_zephyr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = copy_workspace(small_zephyr, tmp_path / "west")
    enter(found, monkeypatch)
    return found


def _run(home: Path) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "run", "zephyr-corstone-320", "add", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "HIL_HOME": str(home)},
    )
    assert not list(home.rglob("*.pte"))
    return done.returncode, json.loads(done.stdout)


def test_a_board_that_is_not_there(zephyr: Path, tmp_path: Path) -> None:
    shutil.rmtree(zephyr / "boards" / "arm" / "mps4")
    status, said = _run(tmp_path / "hil")
    assert status == 2
    assert "has no board mps4 (there are mps3), and the target is built for " + BOARD_320 in str(
        said["cause"]
    )
    assert "hil zephyr init DIR --zephyr VERSION" in str(said["hint"])


def test_a_cpu_that_the_compiler_does_not_know(
    zephyr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that knows none."""
    compiler = tmp_path / "gnu" / "bin" / "arm-none-eabi-gcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text('#!/bin/sh\ncase "$1" in -dump*) echo 12.2.1;; *) exit 1;; esac\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
    monkeypatch.setenv("GNUARMEMB_TOOLCHAIN_PATH", str(tmp_path / "gnu"))
    status, said = _run(tmp_path / "hil")
    assert status == 1
    assert "12.2.1 cannot compile for the cortex-m85" in str(said["cause"])
    assert "ZEPHYR_SDK_INSTALL_DIR" in str(said["hint"])


def test_a_board_of_another_project(zephyr: Path) -> None:
    """Where its zephyr/module.yml says that its boards are."""
    project = zephyr.parent / "manifest"
    (project / "zephyr").mkdir()
    (project / "more" / "boards" / "own").mkdir(parents=True)
    (project / "more" / "boards" / "own" / "board.yml").touch()
    with pytest.raises(UsageError, match="no board own, and") as caught:
        require_workspace("own/soc@2", "cortex-m55")
    assert caught.value.likely == []
    settings = "build:\n  settings:\n    board_root: more\n"
    (project / "zephyr" / "module.yml").write_text(settings)
    require_workspace("own/soc@2", "cortex-m55")


@needs_real_zephyr
def test_the_boards_of_a_real_one() -> None:
    require_workspace("mps3/corstone300/an547", "cortex-m55")
    if not (Path(str(REAL)) / "boards" / "arm" / "mps4").is_dir():
        with pytest.raises(UsageError, match=r"no board mps4 .there are mps3"):
            require_workspace(BOARD_320, "cortex-m85")
