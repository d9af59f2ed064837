"""Inputs, accesses and branches of a run: what it may not do is named."""

from __future__ import annotations

import pytest

from harness.ethosu.errors import AccessError, StreamError, Unsupported
from harness.ethosu.model import run
from tests.ethosu.assembling import INPUT, U85_256, blob, cop1, copying, words


def test_wrong_inputs() -> None:
    with pytest.raises(AccessError, match="0 inputs for 1"):
        run(copying(), [])
    with pytest.raises(AccessError, match="input 0 has 3 bytes, not 256"):
        run(copying(), [b"abc"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"IFM_REGION": 7}, "region 7, which does not exist"),
        ({"IFM_BASE0": 4000}, r"reaches 0xfa0\.\."),
        ({"OFM_BASE0": 4000}, "region 1 .scratch. has 0x1000 bytes"),
        ({"OFM_STRIDE_Y": -2000}, "OFM reaches"),
        ({"OFM_REGION": 0}, "read-only weights"),
        ({"OFM_BASE0": 1040}, "output 0: byte 0 was never written"),
    ],
)
def test_accesses_are_checked(changes: dict[str, int], message: str) -> None:
    with pytest.raises(AccessError, match=message):
        run(copying(**changes), [INPUT])


@pytest.mark.parametrize("target", [2, 1 << 20])
def test_branches_stay_inside(target: int) -> None:
    stream = [0x0000_4100, target, *words("u85", ("STOP", 0))]
    with pytest.raises(StreamError, match="BRANCH goes to"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])


def test_branch_condition_needs_one_element() -> None:
    stream = [0x0001_4100, 0, *words("u85", ("STOP", 0))]
    with pytest.raises(Unsupported, match="RF_TRUE"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])


def test_endless_loop_is_noticed() -> None:
    """One that does nothing, and one that works."""
    with pytest.raises(StreamError, match="no STOP within"):
        run(blob(cop1(U85_256, [0x0000_4100, 0])), [bytes(256)])
    copy = [("DMA0_SRC_REGION", 1), ("DMA0_DST_REGION", 1), ("DMA0_SRC", 0), ("DMA0_DST", 512)]
    stream = [*words("u85", *copy, ("DMA0_LEN", 16), ("DMA_START", 0)), 0x0000_4100, 0]
    with pytest.raises(StreamError, match="no STOP after 20001 operations on"):
        run(blob(cop1(U85_256, stream)), [bytes(256)])
