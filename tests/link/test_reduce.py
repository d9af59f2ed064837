"""Protects the search behind `hil link reduce`; what it makes of whole links is in test_plants."""

from __future__ import annotations

from harness.link.reduce import ddmin


def test_ddmin_finds_the_smallest_part() -> None:
    tried = []

    def still(part: object) -> bool:
        tried.append(part)
        return {3, 17} <= set(part)  # type: ignore[call-overload]

    assert ddmin(list(range(40)), still) == [3, 17]
    assert len(tried) < 100
    assert ddmin([1, 2], lambda _part: True) == []
