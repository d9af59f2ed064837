"""Sums of the U55: which operand is scaled, by how much the other is shifted, which comes first."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.model import run
from tests.npu.assembling import U55_128, blob, cop1, pool, tensors, words

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
