"""Protects how a result is told from one of the bundled runner."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.firmware.source import CheckoutFacts, checkout_facts, label

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


def test_facts_come_back_from_json() -> None:
    assert checkout_facts(json.loads(json.dumps(FACTS.to_fields()))) == FACTS
    before_parts = {name: value for name, value in FACTS.to_fields().items() if name != "parts"}
    assert checkout_facts(before_parts) == FACTS
    assert checkout_facts(None) is None
