"""The decoder of weights: its own end is survived."""

from __future__ import annotations

import pytest

from harness.ethosu.codec import Codec
from harness.ethosu.errors import AccessError


def test_decoder_survives_what_ends_its_worker() -> None:
    codec = Codec()
    with pytest.raises(AccessError, match="cannot be decoded"):
        codec.decode(bytes(3), 7)
    assert list(codec.decode(b"", 7)) == []
