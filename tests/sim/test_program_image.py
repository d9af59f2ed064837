"""A program image; that the runner reads it is held by tests/sim/board."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from harness.core.errors import UsageError
from harness.sim.program_image import intel_hex, make_image

RUN = "0123456789abcdef"


def test_an_image_word_by_word() -> None:
    image = make_image(RUN, ("run", "-m", "a"), {"a": b"alpha", "bee": b"b"}, 1000)
    magic, size, checksum, run, line, count = struct.unpack_from("<4sII16sII", image)
    assert (magic, size, run, count) == (b"HILI", len(image), RUN.encode(), 2)
    assert checksum == crc32(image[12:])
    assert image[line:].startswith(b"run -m a\0")
    name, offset, length = struct.unpack_from("<24sII", image, 36 + 32)
    assert (name.rstrip(b"\0"), offset % 32, image[offset:], length) == (b"bee", 0, b"b", 1)


def test_an_image_that_is_too_large_is_reported() -> None:
    with pytest.raises(UsageError, match=r"take 1,141 bytes, and the board's flash has 1,000"):
        make_image(RUN, ("run",), {"a": bytes(1045)}, 1000)


def test_intel_hex_crosses_64_kib() -> None:
    lines = intel_hex(0x0800FFE0, bytes(range(34))).split()
    assert lines == [
        ":020000040800F2",
        ":20FFE000" + bytes(range(32)).hex().upper() + "11",
        ":020000040801F1",
        ":020000002021BD",
        ":00000001FF",
    ]
