"""The U85's fast weight format."""

from __future__ import annotations

import pytest

from harness.ethosu.errors import AccessError
from harness.ethosu.u85.weights import decode_fast


def test_fast_format_needs_its_header() -> None:
    with pytest.raises(AccessError, match="header is cut short"):
        decode_fast(bytes(31), 0)
