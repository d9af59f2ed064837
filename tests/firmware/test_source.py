"""Protects how a result is told from one of the bundled runner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.firmware.source import CheckoutFacts, label

FACTS = CheckoutFacts("/src/executorch", "cff6f4dd32ab", "main", False, "", "hil", ("linked so",))


@pytest.mark.parametrize(
    ("source", "checkout", "said"),
    [
        ("bundled", None, ""),
        ("executorch", None, "executorch"),
        ("wheel", None, "wheel"),
        ("executorch", FACTS, "executorch cff6f4dd"),
        ("executorch", replace(FACTS, dirty=True), "executorch cff6f4dd+edits"),
        (
            "executorch",
            replace(FACTS, parts=("cmsis-nn 1234abcd+edits",)),
            "executorch cff6f4dd, cmsis-nn 1234abcd+edits",
        ),
    ],
)
def test_the_label(source: str, checkout: CheckoutFacts | None, said: str) -> None:
    assert label(source, checkout) == said
