"""Protects who runs what: everything once, in shards of equal length, the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.nightly.history.database import open_history
from harness.nightly.history.model import Planned
from harness.nightly.shards import (
    BadShard,
    Shard,
    distribute,
    in_order,
    parse_shard,
    usual_seconds,
)
from harness.nightly.suite import Job
from tests.nightly.history.made import at, night, row


def jobs(count: int) -> list[Job]:
    cases = [Case("t", f"m{i}") for i in range(count)]
    return [Job(case, ("bundled",), (Planned(case.id),)) for case in cases]


@pytest.mark.parametrize("said", ["", "1", "0/4", "5/4", "1/0", "a/b", "1/1001", "1/2/3", "-1/2"])
def test_what_is_no_shard(said: str) -> None:
    with pytest.raises(BadShard, match="is no shard") as caught:
        parse_shard(said)
    assert caught.value.text == said


def test_a_shard_is_read() -> None:
    assert parse_shard("2/3") == Shard(2, 3)
    assert str(parse_shard("2/3")) == "2/3"


def test_shards_have_everything_once_and_equal_time() -> None:
    seed = 11
    print(f"seed {seed}")
    draw = random.Random(seed)
    there = jobs(40)
    seconds = {job.case.id: draw.expovariate(0.1) for job in there}
    plan = distribute(there, 4, seconds)
    assert [one.case for one in plan] == [job.case.id for job in there]
    loads = [sum(seconds[p.case] for p in plan if p.shard == n) for n in range(1, 5)]
    best = max(sum(loads) / 4, max(seconds.values()))
    assert max(loads) <= best * 4 / 3  # Graham's bound
    assert plan == distribute(there, 4, seconds)


def test_a_case_that_nobody_timed_takes_as_long_as_others() -> None:
    plan = distribute(jobs(4), 2, {"t/m0": 5.0})
    assert sorted(one.shard for one in plan) == [1, 1, 2, 2]


def test_something_is_known_at_once_and_nobody_waits_at_the_end() -> None:
    seconds = {f"t/m{i}": float(i + 1) for i in range(5)}
    order = [job.case.model for job in in_order(jobs(5), 2, seconds)]
    assert order == ["m0", "m1", "m4", "m3", "m2"]
    assert [job.case.model for job in in_order(jobs(3), 1, {})] == ["m0", "m1", "m2"]


def test_times_are_the_medians_of_nights_that_ended(tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    for day, total in enumerate([1.0, 100.0, 3.0, 50.0], 1):
        history.begin(night(day, "t/m"))
        history.append([row(day, case="t/m", seconds={"total": total})])
        if day < 4:
            history.end(f"n{day}", 1, at(day, 5))
    assert usual_seconds(history) == {"t/m": 3.0}
    history.close()
