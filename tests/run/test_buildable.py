"""Protects that a board which a firmware is not built for is refused before any work starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import source_named
from harness.run import pipeline
from harness.run.pipeline import RunOptions, run_cases
from tests.firmware.executorch.conftest import Source, pristine, read_only

__all__ = ["pristine", "read_only"]


@pytest.fixture(autouse=True)
def nothing_is_exported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def exported(*_: object, **__: object) -> object:
        raise AssertionError("it exported before it looked")

    monkeypatch.setattr(pipeline, "export_cases", exported)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mps2-m7", "is linked for Corstone-300 and Corstone-320"),
        ("zephyr-corstone-300", "ZEPHYR_BASE is not set"),
    ],
)
def test_a_board_that_a_checkout_is_not_built_for(
    read_only: Source, target: str, said: str
) -> None:
    choice = FirmwareChoice((source_named("executorch"),), read_only.root, read_only.parts)
    with pytest.raises(UsageError, match=said):
        run_cases([Case(target, "add")], RunOptions(firmware=choice))


def test_a_board_that_the_wheel_has_no_runtime_for() -> None:
    choice = FirmwareChoice((source_named("wheel"),))
    with pytest.raises(UsageError, match="has its runtime for Linux on AArch64"):
        run_cases([Case("corstone-300-m55", "add")], RunOptions(firmware=choice))
