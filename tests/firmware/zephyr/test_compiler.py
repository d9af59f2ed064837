"""Protects which compiler Zephyr's build is given: the user's, else the Zephyr SDK, else GNU's on
PATH; and that one which lacks the CPU is named before anything is built."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.core.errors import BuildError, ToolMissing, UsageError
from harness.firmware.zephyr.workspace import GNU, GNU_DIR, SDK_DIR, VARIANT, find_compiler

_GCC = "arm-none-eabi-gcc"


def _sdk(folder: Path, version: str, under: str = "") -> Path:
    program = folder / under / "arm-zephyr-eabi" / "bin" / "arm-zephyr-eabi-gcc"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (folder / "sdk_version").write_text(f"{version}\n")
    return folder


def _gnu(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / _GCC).write_text("#!/bin/sh\necho 13.2.1\n")
    (folder / "bin" / _GCC).chmod(0o755)
    return folder


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A home of its own, and nothing on PATH."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "none")}


def test_the_users_variant_is_taken_as_it_is(environ: dict[str, str], tmp_path: Path) -> None:
    _sdk(tmp_path / "home" / "zephyr-sdk-0.17.0", "0.17.0")
    found = find_compiler({**environ, VARIANT: "cross-compile", "CROSS_COMPILE": "/x/arm-"})
    assert dict(found.environment) == {VARIANT: "cross-compile", "CROSS_COMPILE": "/x/arm-"}
    gnu = _gnu(tmp_path / "gnu")
    found = find_compiler({**environ, VARIANT: GNU, GNU_DIR: str(gnu)})
    assert found.name == "arm-none-eabi-gcc 13.2.1"
    assert dict(found.environment) == {VARIANT: GNU, GNU_DIR: str(gnu)}


def test_the_newest_sdk_before_what_is_on_the_path(environ: dict[str, str], tmp_path: Path) -> None:
    environ["PATH"] = str(_gnu(tmp_path / "gnu") / "bin")
    home = tmp_path / "home"
    _sdk(home / "zephyr-sdk-0.9.0", "0.9.0")
    newest = _sdk(home / ".local" / "zephyr-sdk-1.0.0", "1.0.0", "gnu")
    found = find_compiler(environ)
    assert found.name == "Zephyr SDK 1.0.0"
    assert dict(found.environment) == {VARIANT: "zephyr", SDK_DIR: str(newest)}


def test_an_sdk_that_setup_registered(environ: dict[str, str], tmp_path: Path) -> None:
    """CMake's user package registry names the folder cmake/ of it."""
    sdk = _sdk(tmp_path / "elsewhere", "0.17.0")
    registry = tmp_path / "home" / ".cmake" / "packages" / "Zephyr-sdk"
    registry.mkdir(parents=True)
    (registry / "abcdef").write_text(f"{sdk}/cmake\n")
    assert dict(find_compiler(environ).environment)[SDK_DIR] == str(sdk)


def test_gnus_toolchain_on_the_path(environ: dict[str, str], tmp_path: Path) -> None:
    """Where its folder is, not where a link to ccache is."""
    links = tmp_path / "ccache"
    links.mkdir()
    (links / _GCC).touch(mode=0o755)
    gnu = _gnu(tmp_path / "gnu")
    environ["PATH"] = os.pathsep.join([str(links), str(gnu / "bin")])
    assert dict(find_compiler(environ).environment) == {VARIANT: GNU, GNU_DIR: str(gnu)}


def test_without_any(environ: dict[str, str]) -> None:
    with pytest.raises(ToolMissing, match="no compiler for Zephyr") as caught:
        find_compiler(environ)
    assert "west sdk install" in str(caught.value.hint)
    assert "apt-get install gcc-arm-none-eabi" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({VARIANT: "zephyr"}, "there is no Zephyr SDK"),
        ({SDK_DIR: "/nowhere"}, "is not a Zephyr SDK for Arm"),
        ({VARIANT: GNU, GNU_DIR: "/nowhere"}, "has no bin/arm-none-eabi-gcc"),
    ],
)
def test_what_is_named_and_not_there(
    named: dict[str, str], message: str, environ: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match=message):
        find_compiler({**environ, **named})


@pytest.mark.skipif(shutil.which(_GCC) is None, reason=f"needs {_GCC}")
def test_a_cpu_that_the_compiler_does_not_know() -> None:
    compiler = find_compiler({**os.environ, VARIANT: GNU, GNU_DIR: ""})
    compiler.require("cortex-m55")
    with pytest.raises(BuildError, match=r"arm-none-eabi-gcc \d+\.\d+\.\d+ cannot compile") as e:
        compiler.require("cortex-m999")
    assert e.value.verdict == "BUILD_ERROR"
    assert "GCC 13" in str(e.value.hint)
