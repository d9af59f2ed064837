"""Protects what a user is told who asks for ExecuTorch's own sample under Zephyr: which Zephyr it
needs and which there is, before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.config.model import SimulatorName
from harness.core.errors import UsageError
from harness.firmware.executorch.plan import _SAMPLE as SAMPLE
from harness.firmware.executorch.plan import SampleNotBuilt, make_plan
from tests.firmware.executorch.conftest import Source

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


@pytest.mark.parametrize("version", ["4.1.0", "4.4.0"])
def test_both_zephyrs_are_named_and_how_to_build_it_by_hand(
    version: str, small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sample(small.root)
    monkeypatch.setenv("ZEPHYR_BASE", str(_workspace(tmp_path / "zephyr", version)))
    error = _refused(small)
    assert isinstance(error, SampleNotBuilt)
    assert (error.wanted, error.found) == ("4.4.0", version)
    assert "not built by this tool for zephyr-corstone-300" in error.message
    assert "ET_PTE_FILE_PATH" in str(error.hint)
    assert f"it asks for Zephyr 4.4.0, and {tmp_path / 'zephyr'} has {version}" in str(error.hint)


def test_a_checkout_without_a_sample(
    small: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(_workspace(tmp_path / "zephyr", "4.4.0")))
    error = _refused(small)
    assert isinstance(error, SampleNotBuilt)
    assert (error.wanted, error.hint) == (None, "take --firmware bundled")


def test_without_a_workspace(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    _sample(small.root)
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    assert "ZEPHYR_BASE is not set" in _refused(small).message
