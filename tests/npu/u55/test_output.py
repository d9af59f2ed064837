"""The U55's way out: what a result is clamped to."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.model import run
from tests.npu.assembling import INPUT, U55_128, blob, cop1, pool, tensors, words


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
