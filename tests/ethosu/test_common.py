"""What the engines share: the width of accumulators, leading zeros."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.common import check_accumulators, leading_zeros
from harness.ethosu.errors import AccessError


def test_leading_zeros_of_32_bit_numbers() -> None:
    values = np.array([0, 1, 2, 3, 255, 256, (1 << 31) - 1, -1, -(1 << 31)])
    assert leading_zeros(values).tolist() == [32, 31, 30, 30, 24, 23, 1, 0, 0]


@pytest.mark.parametrize("bits", [32, 48])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_accumulator_has_so_many_bits(bits: int, sign: int) -> None:
    """Whether it wraps or saturates beyond is not known, so it is refused."""
    most, limit = (1 << (bits - 1)) - 1, float(1 << 60)
    check_accumulators(np.array([0, sign * most]), limit, bits, 0)
    with pytest.raises(AccessError, match=f"more than its {bits} bits"):
        check_accumulators(np.array([0, sign * (most + 1)]), limit, bits, 0)
