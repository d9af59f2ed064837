"""Protects the project from growing back: each count keeps its limit."""

from __future__ import annotations

import pytest

from tools.counts import Count, counts, long_signatures


@pytest.mark.parametrize("count", counts(), ids=lambda count: count.what)
def test_a_count_keeps_its_limit(count: Count) -> None:
    assert count.number <= count.limit


def test_a_long_signature_is_seen() -> None:
    nine = ", ".join(f"p{i}: int" for i in range(9))
    source = f"def short(a: int) -> None: ...\nclass C:\n    def long(self, {nine}) -> None: ..."
    assert list(long_signatures(source)) == ["long"]
