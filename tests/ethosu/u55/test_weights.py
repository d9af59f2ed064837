"""Weight streams of the U55 in the wrong order, or with too little in them, are named."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.errors import AccessError
from harness.ethosu.u55.weights import WeightLayout, reorder

LAYOUT = WeightLayout(8, (1, 1), 8, 8, 8, False, False, False, (1, 1))


def test_depth_first_order_and_padding() -> None:
    """32 input channels are coded although there are 8: the rest must be 0."""
    coded = np.zeros((4, 8, 8), np.int16)  # IFM microblock, o, i
    coded[0] = np.arange(64).reshape(8, 8)
    weights = reorder([coded.reshape(-1)], LAYOUT, 0)
    assert weights[:, 0, 0, :].tolist() == coded[0].tolist()
    coded[1, 0, 0] = 1
    with pytest.raises(AccessError, match="padding position is not 0"):
        reorder([coded.reshape(-1)], LAYOUT, 0)
    with pytest.raises(AccessError, match="256 are needed"):
        reorder([np.zeros(10, np.int16)], LAYOUT, 0)
