"""Registers of the U55 that nobody has verified are refused."""

from __future__ import annotations

import pytest

from harness.npu.errors import Unsupported
from harness.npu.model import run
from tests.npu.assembling import INPUT, U55_128, blob, cop1, copying, pool, tensors, words


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


@pytest.mark.parametrize("slot", [0, 3, 7])
def test_a_table_is_looked_up_in_its_own_slot(slot: int) -> None:
    """Eight tables of 256 bytes lie in the last 2 KiB of the shared RAM; each has another
    content, and the function says which one."""
    tables = [bytes((value ^ n) & 0xFF for value in range(256)) for n in range(1, 9)]
    items = [("DMA0_SRC_REGION", 0), ("DMA0_DST_REGION", 1 << 8), ("DMA0_LEN", 2048)]
    items += [("DMA0_SRC", 0), ("DMA0_DST", (24 - 2) * 1024), ("DMA_START", 0)]
    stream = words("u55", *items, *pool(ACTIVATION=16 + slot))
    io = {"inputs": tensors(((1, 1, 1, 4, 4, 16), 1, 0, 1))}
    (found,), _ = run(blob(cop1(U55_128, stream), weights=b"".join(tables), **io), [INPUT])
    assert found == bytes(
        tables[slot][value - 256 + 128 if value > 127 else value + 128] for value in INPUT
    )
