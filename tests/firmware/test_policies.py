"""CMake's policies are those of the project, whoever includes it, and none that is deprecated."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.system.paths import executorch_package
from tools.clone import project_root

ROOT = project_root()
_COMMENT = re.compile(r"#.*")


def commands(file: Path) -> set[str]:
    text = _COMMENT.sub("", file.read_text())
    return {name.lower() for name in re.findall(r"^\s*(\w+)\s*\(", text, re.MULTILINE)}


@pytest.mark.parametrize("file", sorted((ROOT / "cmake" / "toolchains").glob("*.cmake")), ids=str)
def test_a_toolchain_leaves_the_policies_alone(file: Path) -> None:
    """A file that is read for every check of the compiler sets no policy: pull request 17367 of
    ExecuTorch had one that did."""
    assert not commands(file) & {"cmake_minimum_required", "cmake_policy"}


def test_nothing_is_fetched() -> None:
    """Neither at a build nor by a way that CMake has given up (CMP0169: FetchContent_Populate)."""
    found = [*(ROOT / "targets").rglob("CMakeLists.txt"), *(ROOT / "cmake").rglob("*.cmake")]
    assert found
    for file in found:
        assert "fetchcontent" not in _COMMENT.sub("", file.read_text()).lower(), file


@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-g++"), reason="needs aarch64-linux-gnu-g++")
def test_cmake_has_nothing_to_warn_of(tmp_path: Path) -> None:
    """Of direct drive's build: no policy is unset, nothing is deprecated."""
    done = subprocess.run(
        [
            "cmake",
            "-S",
            ROOT / "targets" / "runner",
            "-B",
            tmp_path,
            "-G",
            "Ninja",
            "-Werror=dev",
            "-Werror=deprecated",
            "-DHIL_PORT=linux",
            "-DHIL_ETHOSU=ON",
            f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}",
            f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'toolchains' / 'aarch64-linux.cmake'}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
