"""Protects the merging of shards: one night, every case once, and a shard that is missing told."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.nightly.history.compare import State, standings
from harness.nightly.history.database import open_history
from harness.nightly.history.store import History
from harness.nightly.shards import NoShard, NotOneNight, Shard, merge
from tests.nightly.history.made import at, night, row

CASES = ("t/a", "t/b", "t/c", "t/d")


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
    there.append([row(day, case=one.case) for one in mine.of_shard(number)])
    if ended:
        there.end(mine.id, number, at(day, 5))
    there.close()
    return folder / f"s{number}"


def test_shards_become_one_night(history: History, tmp_path: Path) -> None:
    merged = merge([shard(tmp_path, 1), shard(tmp_path, 2) / ".hil"], history)
    assert (merged.rows, merged.missing, merged.doubled) == (4, (), ())
    assert history.ended(merged.night)
    assert sorted(r.case for r in history.rows(["n2"])) == list(CASES)
    assert [n.id for n in history.nights()] == ["n2"]
    assert merge([tmp_path / "s1", tmp_path / "s2"], history).rows == 0  # once more: nothing new


def test_an_exported_file_does_as_well(history: History, tmp_path: Path) -> None:
    there = open_history(f"sqlite:///{shard(tmp_path, 2)}/.hil/history.db")
    (tmp_path / "artefact").mkdir()
    exported = open_history(f"sqlite:///{tmp_path}/artefact/s2.db")
    there.copy_to(exported, "n2")
    exported.close()
    there.close()
    assert merge([shard(tmp_path, 1), tmp_path / "artefact"], history).rows == 4


def test_ids_of_their_own_become_the_first(history: History, tmp_path: Path) -> None:
    merged = merge([shard(tmp_path, 1, day=2), shard(tmp_path, 2, day=3)], history)
    assert merged.night.id == "n2"
    assert {r.night for r in history.every()} == {"n2"}
    assert merged.missing == ()


def test_a_shard_that_did_not_end_is_missing(history: History, tmp_path: Path) -> None:
    merged = merge([shard(tmp_path, 1)], history)
    assert merged.missing == (Shard(2, 2),)
    states = {one.case: one.state for one in standings(history, merged.night)}
    assert [states[c] for c in CASES] == [
        State.PASSING,
        State.MISSING,
        State.PASSING,
        State.MISSING,
    ]
    merged = merge([shard(tmp_path, 2, ended=False)], history)
    assert Shard(2, 2) in merged.missing


def test_a_case_that_two_have_run_counts_once(history: History, tmp_path: Path) -> None:
    one, two = shard(tmp_path, 1), shard(tmp_path, 2)
    there = open_history(f"sqlite:///{two}/.hil/history.db")
    there.append([row(2, "FAULT", "t/a")])
    there.close()
    merged = merge([one, two], history)
    assert merged.doubled == ("t/a",)
    assert [r.verdict.name for r in history.of_case("t/a")] == ["PASS"]


def test_other_suites_are_not_merged(history: History, tmp_path: Path) -> None:
    with pytest.raises(NotOneNight, match="they have another suite") as caught:
        merge([shard(tmp_path, 1), shard(tmp_path, 2, suite="bb", day=3)], history)
    assert caught.value.nights == ("n2", "n3")
    assert history.nights() == []


def test_a_folder_without_a_night_is_told(history: History, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoShard, match="holds no night") as caught:
        merge([tmp_path / "empty"], history)
    assert caught.value.path == str(tmp_path / "empty")
