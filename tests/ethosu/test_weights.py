"""Weight streams that are wrong are named; the decoder's own end is survived."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.codec import Codec
from harness.ethosu.errors import AccessError, StreamError, Unsupported
from harness.ethosu.model import run
from harness.ethosu.u55.weights import WeightLayout, reorder
from harness.ethosu.u85.weights import decode_fast
from tests.ethosu.assembling import U85_256, blob, cop1, words

LAYOUT = WeightLayout(8, (1, 1), 8, 8, 8, False, False, False, (1, 1))


def test_decoder_survives_what_ends_its_worker() -> None:
    codec = Codec()
    with pytest.raises(AccessError, match="cannot be decoded"):
        codec.decode(bytes(3), 7)
    assert list(codec.decode(b"", 7)) == []


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


def test_fast_format_needs_its_header() -> None:
    with pytest.raises(AccessError, match="header is cut short"):
        decode_fast(bytes(31), 0)


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
