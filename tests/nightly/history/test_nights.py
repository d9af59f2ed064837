"""Protects the form that rows travel in, and what counts as good, bad and settled."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from harness.core.judgement import Blame
from harness.core.verdict import Verdict
from harness.nightly.history.nights import Excerpt, Excluded, Night, Row, last_tries
from harness.nightly.history.store import TYPES

from .made import night, row


def test_a_row_comes_back_from_json_as_it_was() -> None:
    there = row(
        1,
        "MISMATCH",
        blame=Blame("npu", "the NPU", {"at": [1]}),
        excerpt=Excerpt(5, ("a", "b")),
        notes=("n",),
        operators=("aten::add.out",),
        quarantined="until …",
        worst_lsb=0.5,
    )
    assert TYPES[Row].validate_python(json.loads(json.dumps(asdict(there)))) == there


def test_a_night_comes_back_from_json_as_it_was() -> None:
    there = night(1, "a/b", "a/c", shards=2, excluded=(Excluded("a/d", "slow"),))
    assert TYPES[Night].validate_python(json.loads(json.dumps(asdict(there)))) == there
    assert [one.case for one in there.of_shard(2)] == ["a/c"]


@pytest.mark.parametrize(
    ("verdict", "good", "bad"),
    [
        ("PASS", True, False),
        ("MISMATCH", False, True),
        ("NO_VERDICT", False, True),
        ("OVER_BUDGET", False, True),
        ("INFRA", False, False),
        ("SKIPPED", False, False),
    ],
)
def test_only_what_says_something_of_the_product_is_good_or_bad(
    verdict: str, good: bool, bad: bool
) -> None:
    assert (row(1, verdict).good, row(1, verdict).bad) == (good, bad)


def test_only_infra_is_not_settled_by_its_first_try() -> None:
    assert [v.name for v in Verdict if not row(1, v.name).settled] == ["INFRA"]
    assert row(1, "INFRA", attempt=2).settled


def test_the_last_try_counts() -> None:
    tries = [row(1, "PASS", attempt=2), row(1, "INFRA", attempt=1)]
    assert last_tries(tries)["corstone-300-m55/add"].verdict is Verdict.PASS
