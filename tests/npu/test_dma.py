"""DMA: where each row and plane comes from and goes to, and where it may not go."""

from __future__ import annotations

import numpy as np
import pytest

from harness.formats.ethosu import CONFIG_WORDS
from harness.npu.blob import read_actions
from harness.npu.errors import AccessError
from harness.npu.model import DecodedStream
from tests.npu.assembling import U85_256, cop1, words

U65_256 = CONFIG_WORDS["u65", 256]
BASE = {"DMA0_SRC_REGION": 1, "DMA0_DST_REGION": 1, "DMA0_SRC": 0, "DMA0_DST": 512}
Memory = np.ndarray


def ran(config: int, product: str, **registers: int) -> Memory:
    """1024 bytes of scratch: 0 to 255 in front, the rest 0xEE."""
    stream = words(product, *{**BASE, **registers}.items(), ("DMA_START", 0), ("STOP", 0xFFFF))
    scratch = np.full(1024, 0xEE, np.uint8)
    scratch[:256] = np.arange(256)
    weights = np.zeros(64, np.uint8)
    DecodedStream(read_actions(cop1(config, stream))).execute({0: weights, 1: scratch})
    return scratch


def expected(pieces: dict[int, range]) -> Memory:
    scratch = np.full(1024, 0xEE, np.uint8)
    scratch[:256] = np.arange(256)
    for at, values in pieces.items():
        scratch[at : at + len(values)] = values
    return scratch


def test_skips_of_the_u65_are_gaps_between_rows_and_between_planes() -> None:
    """The source has no gaps. A row ends, SKIP0 bytes are left out; a plane ends, SKIP1 more."""
    rows = {"DMA0_LEN": 4, "DMA0_SIZE0": 3, "DMA0_SKIP0": 5}
    found = ran(U65_256, "u55", DMA0_DST_REGION=1 | 1 << 9, **rows)
    wanted = {512: range(4), 521: range(4, 8), 530: range(8, 12)}
    assert (found == expected(wanted)).all()
    planes = {"DMA0_SIZE1": 2, "DMA0_SKIP1": 7}
    found = ran(U65_256, "u55", DMA0_DST_REGION=1 | 2 << 9, **rows, **planes)
    second = 512 + 3 * 9 + 7
    wanted |= {second + 9 * n: range(12 + 4 * n, 16 + 4 * n) for n in range(3)}
    assert (found == expected(wanted)).all()


def test_skips_may_go_backwards() -> None:
    rows = {"DMA0_LEN": 4, "DMA0_SIZE0": 2, "DMA0_SKIP0": -12}
    found = ran(U65_256, "u55", DMA0_DST_REGION=1 | 1 << 9, **rows)
    assert (found == expected({512: range(4), 504: range(4, 8)})).all()


def test_strides_of_the_u85_are_from_start_to_start() -> None:
    """Rows and planes, at both ends; each end has strides of its own."""
    rows = {"DMA0_LEN": 4, "DMA0_SIZE0": 2, "DMA0_SRC_STRIDE0": 16, "DMA0_DST_STRIDE0": 8}
    found = ran(U85_256, "u85", DMA0_SRC_REGION=1 | 1 << 9, DMA0_DST_REGION=1 | 1 << 9, **rows)
    assert (found == expected({512: range(4), 520: range(16, 20)})).all()
    planes = {"DMA0_SIZE1": 3, "DMA0_SRC_STRIDE1": 64, "DMA0_DST_STRIDE1": 100}
    region = 1 | 2 << 9
    found = ran(U85_256, "u85", DMA0_SRC_REGION=region, DMA0_DST_REGION=region, **rows, **planes)
    wanted = {
        512 + 100 * p + 8 * r: range(64 * p + 16 * r, 64 * p + 16 * r + 4)
        for p in range(3)
        for r in range(2)
    }
    assert (found == expected(wanted)).all()


@pytest.mark.parametrize(("largest", "fits"), [(240, True), (239, False)])
def test_an_index_is_held_against_its_limit(largest: int, fits: bool) -> None:
    """A gather of the row that byte 240 and three zeros of the memory name."""
    registers = {
        "DMA0_SRC_REGION": 1 | 1 << 11,
        "DMA0_LEN": 1,
        "DMA0_SIZE0": 1,
        "DMA0_SRC_STRIDE0": 1,
        "DMA0_IDX_REGION": 2,
        "DMA0_IDX": 0,
        "DMA0_IDX_MAX": largest,
    }
    stream = words("u85", *{**BASE, **registers}.items(), ("DMA_START", 0), ("STOP", 0))
    scratch = expected({})
    indices = np.array([240, 0, 0, 0], np.uint8)
    program = DecodedStream(read_actions(cop1(U85_256, stream)))
    if fits:
        program.execute({1: scratch, 2: indices})
        assert scratch[512] == 240
        return
    with pytest.raises(AccessError, match=r"a DMA index is outside 0\.\.239"):
        program.execute({1: scratch, 2: indices})


@pytest.mark.parametrize(("config", "product"), [(U65_256, "u55"), (U85_256, "u85")])
def test_weights_are_read_only_for_a_dma_too(config: int, product: str) -> None:
    with pytest.raises(AccessError, match="DMA writes to the read-only weights"):
        ran(config, product, DMA0_DST_REGION=0, DMA0_DST=0, DMA0_LEN=4)
