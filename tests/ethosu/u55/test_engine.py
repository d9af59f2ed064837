"""Registers of the U55 that nobody has verified are refused."""

from __future__ import annotations

import pytest

from harness.ethosu.errors import Unsupported
from harness.ethosu.model import run
from tests.ethosu.assembling import INPUT, copying


@pytest.mark.parametrize(
    ("changes", "register"),
    [
        ({"IFM_PRECISION": 0}, "IFM_PRECISION.activation_type"),
        ({"OFM_PRECISION": 0x4101}, "OFM_PRECISION.round_mode"),
        ({"OFM_PRECISION": 0x0101, "OFM_SCALE": 3 << 32 | 5}, "OFM_PRECISION.round_mode"),
        ({"ACTIVATION": 3}, "ACTIVATION.activation_function"),
        ({"ACTIVATION": 4}, "ACTIVATION.activation_function"),
        ({"ACTIVATION_MIN": 100, "ACTIVATION_MAX": 50}, "ACTIVATION_MIN"),
        ({"KERNEL_STRIDE": 32}, "KERNEL_STRIDE.decomposition"),
        ({"IFM_UPSCALE": 3}, "IFM_UPSCALE"),
        ({"IFM_PRECISION": 0x81}, "IFM_PRECISION.activation_format"),
        ({"OFM_DEPTH_M1": 7}, "IFM_DEPTH_M1"),
    ],
)
def test_unverified_registers_are_named(changes: dict[str, int], register: str) -> None:
    """Register, value and offset as data; nothing is guessed."""
    with pytest.raises(Unsupported) as caught:
        run(copying(**changes), [INPUT])
    assert caught.value.register == register
    assert caught.value.offset > 0
    assert caught.value.value is not None
