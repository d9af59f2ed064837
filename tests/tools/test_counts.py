"""Protects the project from growing back: each count keeps its limit."""

from __future__ import annotations

from tools.counts import counts, long_signatures


def test_each_count_keeps_its_limit() -> None:
    assert [count for count in counts() if not count.holds] == []


def test_a_long_signature_is_seen() -> None:
    nine = ", ".join(f"p{i}: int" for i in range(9))
    source = f"def short(a: int) -> None: ...\nclass C:\n    def long(self, {nine}) -> None: ..."
    assert list(long_signatures(source)) == ["long"]
