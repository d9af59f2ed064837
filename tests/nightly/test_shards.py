"""Protects who runs what: everything once, in shards of equal length, the same on every machine;
and the merging of shards: one night, every case once, and a shard that is missing is named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.nightly.history.case_state import CaseState
from harness.nightly.history.compare import compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Planned
from harness.nightly.history.store import History
from harness.nightly.night import distribute, longest_first, merge, usual_seconds
from harness.nightly.suite import NightJob, Shard, parse_shard
from tests.nightly.history.made import night, row

CASES = ("t/a", "t/b", "t/c", "t/d")


def jobs(count: int) -> list[NightJob]:
    cases = [Case("t", f"m{i}") for i in range(count)]
    return [NightJob(case, ("bundled",), (Planned(case.id),)) for case in cases]


@pytest.mark.parametrize("said", ["", "1", "0/4", "5/4", "1/0", "a/b", "1/1001", "1/2/3", "-1/2"])
def test_what_is_not_a_shard(said: str) -> None:
    with pytest.raises(UsageError, match="is not a shard"):
        parse_shard(said)


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


def test_cases_that_nobody_timed_are_spread_too() -> None:
    plan = distribute(jobs(4), 2, {"t/m0": 5.0})
    assert sorted(one.shard for one in plan) == [1, 1, 2, 2]


def test_nobody_waits_at_the_end_for_a_long_case() -> None:
    seconds = {f"t/m{i}": float(i % 3) for i in range(5)}
    order = [job.case.model for job in longest_first(jobs(5), seconds)]
    assert order == ["m2", "m1", "m4", "m0", "m3"]


def test_times_are_those_of_the_last_run_that_ended(tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    for day, (verdict, total) in enumerate([("PASS", 1.0), ("FAULT", 3.0), ("INFRA", 0.1)], 1):
        history.begin(night(day, "t/m"))
        history.append([row(day, verdict, "t/m", seconds={"total": total})])
    assert usual_seconds(history) == {"t/m": 3.0}
    history.close()


@pytest.fixture
def history(tmp_path: Path) -> History:
    return open_history(f"sqlite:///{tmp_path}/all.db")


def shard(
    folder: Path, number: int, *, ended: bool = True, day: int = 2, suite: str = "aa"
) -> Path:
    """A machine that had another night before, and then ran its half of this one."""
    there = open_history(f"sqlite:///{folder}/s{number}/.hil/history.db")
    there.begin(night(1, "t/a"))
    there.append([row(1, "FAULT", "t/a")])
    mine = there.begin(night(day, *CASES, shards=2, suite_sha256=suite))
    cases = mine.of_shard(number) if ended else mine.of_shard(number)[1:]
    there.append([row(day, case=one.case) for one in cases])
    there.close()
    return folder / f"s{number}"


def test_shards_become_one_night(history: History, tmp_path: Path) -> None:
    merged, missing, doubled = merge([shard(tmp_path, 1), shard(tmp_path, 2) / ".hil"], history)
    assert (missing, doubled) == ([], [])
    assert history.unfinished(merged) == []
    assert sorted(r.case for r in history.rows(["n2"])) == list(CASES)
    assert [n.id for n in history.nights()] == ["n2"]
    merge([tmp_path / "s1", tmp_path / "s2"], history)  # once more: nothing new
    assert len(history.rows(["n2"])) == 4


def test_an_exported_file_does_as_well(history: History, tmp_path: Path) -> None:
    there = open_history(f"sqlite:///{shard(tmp_path, 2)}/.hil/history.db")
    (tmp_path / "artefact").mkdir()
    exported = open_history(f"sqlite:///{tmp_path}/artefact/s2.db")
    there.copy_to(exported, "n2")
    exported.close()
    there.close()
    merge([shard(tmp_path, 1), tmp_path / "artefact"], history)
    assert len(history.rows(["n2"])) == 4


def test_a_shard_that_did_not_end_is_missing(history: History, tmp_path: Path) -> None:
    merged, missing, _ = merge([shard(tmp_path, 1)], history)
    assert missing == [Shard(2, 2)]
    states = {one.case: one.state for one in compare(history, merged).cases}
    assert [states[c] for c in CASES] == [
        CaseState.PASSING,
        CaseState.MISSING,
        CaseState.PASSING,
        CaseState.MISSING,
    ]
    _, missing, _ = merge([shard(tmp_path, 2, ended=False)], history)
    assert Shard(2, 2) in missing


def test_a_case_that_two_have_run_counts_once_and_is_reported(
    history: History, tmp_path: Path
) -> None:
    one, two = shard(tmp_path, 1), shard(tmp_path, 2)
    there = open_history(f"sqlite:///{two}/.hil/history.db")
    there.append([row(2, "FAULT", "t/a")])
    there.close()
    _, _, doubled = merge([one, two], history)
    assert doubled == ["t/a"]
    assert [r.verdict.name for r in history.of_case("t/a", suite="suite", branch="main")] == [
        "PASS"
    ]


@pytest.mark.parametrize("other", [{"suite": "bb"}, {"day": 3}])
def test_other_nights_are_not_merged(
    other: dict[str, Any], history: History, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="are not shards of one night"):
        merge([shard(tmp_path, 1), shard(tmp_path, 2, **other)], history)
    assert history.nights() == []


def test_a_folder_without_a_night_is_reported(history: History, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no night") as caught:
        merge([tmp_path / "empty"], history)
    assert caught.value.path == str(tmp_path / "empty")
