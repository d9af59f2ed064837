"""Protects what a user is told who asks for ExecuTorch's own sample under Zephyr, before anything
is built."""

from __future__ import annotations

import pytest

from harness.config.loading import load_target
from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.executorch.plan import _SAMPLE as SAMPLE
from harness.firmware.executorch.plan import make_plan
from tests.firmware.executorch.conftest import Source

TARGET = load_target("zephyr-corstone-300").on(SimulatorName.QEMU)


def _refused(source: Source) -> UsageError:
    with pytest.raises(
        UsageError, match="not built by this tool for zephyr-corstone-300"
    ) as caught:
        make_plan(TARGET, SimulatorName.QEMU, source.find())
    return caught.value


def test_how_to_build_it_by_hand(small: Source) -> None:
    (small.root / SAMPLE).mkdir(parents=True)
    error = _refused(small)
    assert f"{small.root / SAMPLE} -- -DET_PTE_FILE_PATH=FILE.pte" in str(error.hint)
    assert "zephyr/README.md asks for" in str(error.hint)


def test_a_checkout_without_a_sample(read_only: Source) -> None:
    assert _refused(read_only).hint == "take --firmware bundled"
