"""Protects plurals."""

from __future__ import annotations

import pytest

from harness.core.words import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 models"), (1, "1 model"), (2, "2 models"), (1234, "1,234 models")]
)
def test_numbers(number: int, said: str) -> None:
    assert counted(number, "model") == said
