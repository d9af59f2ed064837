"""Where the elements of a feature map lie."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.errors import AccessError
from tests.npu.assembling import INPUT, copying, run


def test_tiles_choose_their_base() -> None:
    """Right of WIDTH0 and below HEIGHT0 the other bases count."""
    changes = {"OFM_WIDTH0_M1": 1, "OFM_HEIGHT0_M1": 1, "OFM_HEIGHT1_M1": 1}
    bases = {"OFM_BASE1": 1024 + 32, "OFM_BASE2": 1024 + 128, "OFM_BASE3": 1024 + 160}
    assert run(copying(**changes, **bases), [INPUT])[0] == [INPUT]
    swapped = {"OFM_BASE1": 1024 + 128, "OFM_BASE2": 1024 + 32, "OFM_BASE3": 1024 + 160}
    quarters = np.frombuffer(INPUT, np.uint8).reshape(2, 2, 2, 32)  # lower, row, right, bytes
    expected = quarters.transpose(2, 1, 0, 3).tobytes()
    assert run(copying(**changes, **swapped), [INPUT])[0] == [expected]


def test_the_right_side_has_a_height_of_its_own() -> None:
    """HEIGHT0 divides the left column of tiles, HEIGHT1 the right one."""
    changes = {"OFM_WIDTH0_M1": 1, "OFM_HEIGHT0_M1": 0, "OFM_HEIGHT1_M1": 2}
    tops = {"OFM_BASE0": 1024, "OFM_BASE1": 1024 + 32}
    bottoms = {"OFM_BASE2": 1024 + 64, "OFM_BASE3": 1024 + 192 + 32}
    assert run(copying(**changes, **tops, **bottoms), [INPUT])[0] == [INPUT]


def test_rows_and_columns_may_go_backwards() -> None:
    """As reversed outputs are stored: the base is the last row, or the last column."""
    rows = np.frombuffer(INPUT, np.uint8).reshape(4, 4, 16)
    (found,) = run(copying(OFM_BASE0=1024 + 192, OFM_STRIDE_Y=-64), [INPUT])[0]
    assert found == rows[::-1].tobytes()
    (found,) = run(copying(OFM_BASE0=1024 + 48, OFM_STRIDE_X=-16), [INPUT])[0]
    assert found == rows[:, ::-1].tobytes()


@pytest.mark.parametrize("side", [{"OFM_BASE0": 4096 - 256}, {"IFM_BASE0": 4096 - 256}])
def test_a_map_ends_with_its_region(side: dict[str, int]) -> None:
    """One that goes up to the last byte is inside, one that goes a byte further is not."""
    run(copying(**side), [INPUT], strict=False)
    beyond = {name: base + 1 for name, base in side.items()}
    with pytest.raises(AccessError, match=r"reaches 0xf01\.\.0x1001"):
        run(copying(**beyond), [INPUT], strict=False)
