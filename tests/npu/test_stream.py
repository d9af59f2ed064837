"""Words to operations: a malformed stream is named with its place."""

from __future__ import annotations

import pytest

from harness.npu.errors import StreamError
from harness.npu.stream import Write, decode_at, register_set
from tests.npu.assembling import INPUT, U55_128, blob, cop1, run, words


@pytest.mark.parametrize(
    ("stream", "message", "offset"),
    [
        ([0x0001_0000], "has no STOP", 4),
        ([0x0000_0400], "reserved bits", 0),
        ([0x0000_00FF], "unknown 32-bit command", 0),
        ([0x0000_C000], "unknown kind of command 3", 0),
        ([0x0000_4000], "ends inside a 64-bit command", 0),
        ([0x0000_4008, 0], "unknown 64-bit command", 0),
        (words("u55", ("POOL", 1)), "is used before it is set", 0),
    ],
)
def test_malformed_stream(stream: list[int], message: str, offset: int) -> None:
    if message == "has no STOP":
        stream = words("u55", ("DMA_WAIT", 0))
    with pytest.raises(StreamError, match=message) as caught:
        run(blob(cop1(U55_128, stream)), [INPUT])
    assert caught.value.offset == offset


WIDE = [
    ("IFM_BASE0", (1 << 40) - 1),
    ("IFM_BASE0", 1 << 39),
    ("IFM_STRIDE_Y", 1 << 31),
    ("IFM_STRIDE_Y", (1 << 39) - 1),
    ("IFM_STRIDE_Y", -1),
    ("IFM_STRIDE_Y", -(1 << 39)),
]


@pytest.mark.parametrize("product", ["u55", "u85"])
@pytest.mark.parametrize(("register", "value"), WIDE)
def test_addresses_and_steps_have_40_bits(product: str, register: str, value: int) -> None:
    """An address has no sign; a step has it in the highest of them."""
    write, _ = decode_at(words(product, (register, value)), 0, register_set(product))
    assert write == Write(0, register, value)
