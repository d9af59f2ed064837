"""Operations of the U55: sums, clamps, tables; registers that nobody has verified are refused."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.errors import Unsupported
from tests.npu.assembling import INPUT, U55_128, blob, cop1, copying, pool, run, tensors, words


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


SCALAR = 1 << 7
ADD, SUB = 1, 2


def summed(bits: int, scaling: int, operation: int, broadcast: int, ofm_scale: int) -> list[int]:
    """4 x 4 x 128 / bits numbers, 0 and on, and the scalar 5; no operand has another scale."""
    size = bits // 8
    fields = {"IFM_PRECISION": 1 | (size - 1) << 2 | scaling << 8, "IFM2_PRECISION": 1}
    fields |= {"IFM_STRIDE_X": 16, "OFM_PRECISION": 0x8101 | (size - 1) << 1, "OFM_STRIDE_X": 16}
    fields |= dict.fromkeys(("IFM_DEPTH_M1", "OFM_DEPTH_M1"), 16 // size - 1)
    fields |= {"IFM2_BROADCAST": SCALAR | broadcast, "IFM2_SCALAR": 5, "IFM2_ZERO_POINT": 0}
    fields |= {"OPA_SCALE": 1, "OPB_SCALE": 1, "OFM_SCALE": ofm_scale}
    items = [*pool(**fields)[:-2], ("ELEMENTWISE", operation), ("STOP", 0xFFFF)]
    io = tensors(((1, 1, 1, 4, 4, 16 // size), size, 0, 1))
    out = tensors(((1, 1, 1, 4, 4, 16 // size), size, 1024, 1))
    values = (np.arange(256 // size) // 4).astype(f"<i{size}")
    data = blob(cop1(U55_128, words("u55", *items)), inputs=io, outputs=out)
    (found,), _ = run(data, [values.tobytes()])
    return np.frombuffer(found, f"<i{size}").tolist()


@pytest.mark.parametrize(("bits", "shift"), [(8, 19), (16, 14)])
def test_the_operand_that_is_not_scaled_is_shifted(bits: int, shift: int) -> None:
    """OPA_32 scales the first, here by 1, and OPB_32 the second: what OFM_SCALE shifts back is
    the other one, for a half of a unit at most is left of what was scaled."""
    count = 2048 // bits
    back = 1 | shift << 32
    assert summed(bits, 2, ADD, 0, back) == [n // 4 for n in range(count)]
    assert summed(bits, 1, ADD, 0, back) == [5] * count


@pytest.mark.parametrize(("broadcast", "sign"), [(0, 1), (1 << 6, -1)])
def test_the_operands_may_be_reversed(broadcast: int, sign: int) -> None:
    found = summed(8, 0, SUB, broadcast, 1)
    assert found == [sign * (n // 4 - 5) for n in range(256)]


@pytest.mark.parametrize(("clip", "low", "high"), [(0, -512, 508), (3, -128, 127)])
def test_the_clip_range_is_of_the_output_or_of_8_bits(clip: int, low: int, high: int) -> None:
    """16-bit results, four times the input: they leave 8 bits, and the registers allow it."""
    changes = {"OFM_PRECISION": 0x8103, "OFM_STRIDE_Y": 128, "OFM_STRIDE_X": 32, "OFM_SCALE": 4}
    changes |= {"ACTIVATION": clip << 12, "ACTIVATION_MIN": -0x8000, "ACTIVATION_MAX": 0x7FFF}
    stream = words("u55", *pool(**changes))
    outputs = tensors(((1, 1, 1, 4, 4, 16), 2, 1024, 1))
    (found,), _ = run(blob(cop1(U55_128, stream), outputs=outputs), [INPUT])
    wanted = np.clip(4 * np.frombuffer(INPUT, np.int8).astype(int), low, high)
    assert np.frombuffer(found, "<i2").tolist() == wanted.tolist()
