"""Protects what a user is told who asks for ExecuTorch's own sample under Zephyr: which Zephyr it
needs and which there is, before anything is built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.config.model import SimulatorName
from harness.core.errors import UsageError
from harness.firmware.executorch.plan import make_plan
from harness.firmware.executorch.zephyr_sample import SAMPLE, NoSample, SampleNotBuilt, ZephyrTooOld
from tests.firmware.executorch.conftest import Source
from tests.link.workspace import needs_real_zephyr

TARGET = load_target("zephyr-corstone-300").on(SimulatorName.QEMU)


def _workspace(folder: Path, version: str) -> Path:
    """As much of a Zephyr as is looked at."""
    package = folder / "share" / "zephyr-package" / "cmake"
    package.mkdir(parents=True)
    (package / "ZephyrConfig.cmake").touch()
    major, minor, patch = version.split(".")
    (folder / "VERSION").write_text(
        f"VERSION_MAJOR = {major}\nVERSION_MINOR = {minor}\nPATCHLEVEL = {patch}\n"
    )
    return folder


def _sample(root: Path, asks: str = "v4.4.0") -> None:
    (root / SAMPLE).mkdir(parents=True)
    (root / SAMPLE / "CMakeLists.txt").touch()
    (root / "zephyr" / "README.md").write_text(f"```\nwest init --manifest-rev {asks}\n```\n")


def _refused(source: Source) -> UsageError:
    with pytest.raises(UsageError) as caught:
        make_plan(TARGET, SimulatorName.QEMU, source.find())
    return caught.value


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "llvm")  # is not looked at


def test_an_older_zephyr(small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sample(small.root)
    monkeypatch.setenv("ZEPHYR_BASE", str(_workspace(tmp_path / "zephyr", "4.1.0")))
    error = _refused(small)
    assert isinstance(error, ZephyrTooOld)
    assert (error.wanted, error.found) == ("4.4.0", "4.1.0")
    assert "asks for Zephyr 4.4.0, and the workspace has 4.1.0" in error.message
    assert "--manifest-rev v4.4.0" in str(error.hint)


@pytest.mark.parametrize("version", ["4.4.0", "4.10.0", "5.0.0"])
def test_one_that_is_new_enough_is_told_how_by_hand(
    version: str, small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sample(small.root)
    monkeypatch.setenv("ZEPHYR_BASE", str(_workspace(tmp_path / "zephyr", version)))
    error = _refused(small)
    assert isinstance(error, SampleNotBuilt)
    assert "ET_PTE_FILE_PATH" in str(error.hint)


def test_a_checkout_without_a_sample(
    small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(_workspace(tmp_path / "zephyr", "4.4.0")))
    assert isinstance(_refused(small), NoSample)


def test_without_a_workspace(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    _sample(small.root)
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    assert "ZEPHYR_BASE is not set" in _refused(small).message


@needs_real_zephyr
def test_a_real_checkout_and_a_real_workspace(real: Source) -> None:
    """One older than what it asks for: west itself agrees that it cannot be built."""
    error = _refused(real)
    assert isinstance(error, ZephyrTooOld | SampleNotBuilt)
    if isinstance(error, ZephyrTooOld):
        folder = real.folder / "build"
        program = real.folder / "program.pte"
        program.write_bytes(b"never read")
        argv = [
            "west",
            "build",
            "-b",
            "mps3/corstone300/fvp",
            "-d",
            str(folder),
            str(real.root / SAMPLE),
            "--",
            f"-DEXTRA_ZEPHYR_MODULES={real.root}",
            f"-DET_PTE_FILE_PATH={program}",
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=real.folder)
        assert done.returncode != 0
