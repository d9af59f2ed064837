"""Where the elements of a feature map lie."""

from __future__ import annotations

import numpy as np

from harness.ethosu.model import run
from tests.ethosu.assembling import INPUT, copying


def test_tiles_choose_their_base() -> None:
    """Right of WIDTH0 and below HEIGHT0 the other bases count."""
    changes = {"OFM_WIDTH0_M1": 1, "OFM_HEIGHT0_M1": 1, "OFM_HEIGHT1_M1": 1}
    bases = {"OFM_BASE1": 1024 + 32, "OFM_BASE2": 1024 + 128, "OFM_BASE3": 1024 + 160}
    assert run(copying(**changes, **bases), [INPUT])[0] == [INPUT]
    swapped = {"OFM_BASE1": 1024 + 128, "OFM_BASE2": 1024 + 32, "OFM_BASE3": 1024 + 160}
    quarters = np.frombuffer(INPUT, np.uint8).reshape(2, 2, 2, 32)  # lower, row, right, bytes
    expected = quarters.transpose(2, 1, 0, 3).tobytes()
    assert run(copying(**changes, **swapped), [INPUT])[0] == [expected]
