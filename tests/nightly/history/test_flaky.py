"""Protects what is called flaky: other results of equal runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.nightly.history.case_state import flaky

from .made import KNOWN, row


def test_flaky_is_what_ends_otherwise_with_the_same() -> None:
    other = replace(KNOWN, host="farm", harness="h2")
    changed = replace(KNOWN, sources="s2", firmware="f2")
    rows = [
        row(1, case="t/flaky"),
        row(2, "MISMATCH", "t/flaky", identity=other),
        row(1, case="t/broken"),
        row(2, "MISMATCH", "t/broken", identity=changed),
        row(1, "INFRA", "t/infra"),
        row(1, case="t/infra", attempt=2),
        row(1, "INFRA", "t/killed"),
        row(1, "INFRA", "t/killed", attempt=2),
        row(2, "PASS", "t/killed"),
        row(1, case="t/outputs", output="aa"),
        row(2, case="t/outputs", output="bb"),
        row(1, "BUILD_ERROR", "t/unbuilt", identity=replace(KNOWN, firmware="")),
        row(2, "PASS", "t/unbuilt", identity=replace(KNOWN, firmware="")),
    ]
    found = {one.case: one for one in flaky(rows)}
    assert sorted(found) == ["t/flaky", "t/infra", "t/outputs"]
    assert found["t/flaky"].verdicts == {"PASS": 1, "MISMATCH": 1}
    assert found["t/infra"].rescued == 1
    assert found["t/outputs"].outputs == 2


def test_the_flakiest_comes_first() -> None:
    def many(case: str, bad: int) -> Sequence[Any]:
        return [row(d, "FAULT" if d <= bad else "PASS", case) for d in range(1, 11)]

    assert [one.case for one in flaky([*many("t/a", 1), *many("t/b", 4)])] == ["t/b", "t/a"]
