"""Protects what is kept: once, whoever writes and whoever is killed, in both databases."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.nightly.history.compare import compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Origin
from harness.nightly.history.store import History, HistoryUnreachable
from tests.thorough import cases

from . import postgresql
from .made import at, night, row

CASE = "corstone-300-m55/add"


def test_a_try_of_a_case_is_kept_once(history: History) -> None:
    assert history.append([row(1, "INFRA")]) == 1
    assert history.append([row(1, "PASS"), row(1, "PASS", attempt=2)]) == 1
    assert [(r.attempt, r.verdict) for r in history.rows(["n1"])] == [(1, "INFRA"), (2, "PASS")]
    assert history.append([]) == 0


def test_a_row_is_read_as_it_was_written(history: History) -> None:
    there = row(1, "MISMATCH", metrics={"pte_bytes": 1 << 40}, notes=("naïve ✓",))
    history.append([there])
    assert history.of_case(CASE, suite="suite", branch="main") == [there]
    assert list(history.every()) == [there]


def test_the_first_to_begin_a_night_says_what_it_is(history: History) -> None:
    first = night(1, "a/b")
    assert history.begin(first) == first
    assert history.begin(night(1, "a/c")) == first
    assert history.night("n1") == first
    assert history.night("n2") is None


def test_nights_are_reported_the_newest_first(history: History) -> None:
    for day in (2, 1, 3):
        history.begin(night(day, suite="x" if day == 2 else "suite"))
    assert [n.id for n in history.nights()] == ["n3", "n2", "n1"]
    assert [n.id for n in history.nights(suite="suite", most=1)] == ["n3"]


def test_what_is_left_of_a_night_is_what_has_no_settled_row(history: History) -> None:
    spread = history.begin(night(1, "a/b", "a/c", shards=2))
    assert [planned.case for planned in history.unfinished(spread)] == ["a/b", "a/c"]
    history.append([row(1, "INFRA", "a/b"), row(1, "FAULT", "a/c")])
    assert [(planned.case, planned.shard) for planned in history.unfinished(spread)] == [("a/b", 1)]
    history.append([row(1, "INFRA", "a/b", attempt=2)])
    assert history.unfinished(spread) == []


def test_the_newest_runs_of_a_case_come_in_the_order_of_time(history: History) -> None:
    history.append([row(day) for day in (3, 1, 2)])
    history.append([row(1, case="a/b")])
    assert [r.night for r in history.of_case(CASE, suite="suite", branch="main")] == [
        "n1",
        "n2",
        "n3",
    ]
    assert [r.night for r in history.of_case(CASE, 2, suite="suite", branch="main")] == [
        "n2",
        "n3",
    ]
    assert history.cases() == ["a/b", CASE]


def test_a_history_is_copied_into_another_once(history: History, tmp_path: Path) -> None:
    history.begin(night(1, "a/b", "a/c", shards=2))
    history.begin(night(2, "a/b"))
    history.append([row(1, "INFRA"), row(1, attempt=2), row(2, "MISMATCH")])
    other = open_history(f"sqlite:///{tmp_path}/other.db")
    assert history.copy_to(other, "n2") == Counter(nights=1, rows=1, known=0)
    assert history.copy_to(other) == Counter(nights=1, rows=2, known=2)
    assert history.copy_to(other) == Counter(nights=0, rows=0, known=5)
    assert other.nights() == history.nights()
    assert list(other.every()) == list(history.every())
    other.close()


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        '{"verdict": "GREAT"}',
        '{"schema": 9}',
        json.dumps(asdict(row(1))).replace('"attempt": 1', '"attempt": "x"'),
        json.dumps(asdict(row(1))).replace('"case": "', '"case": 7, "x": "'),
    ],
)
def test_what_somebody_else_wrote_is_refused_with_a_sentence(body: str, tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    history.append([row(1)])
    with sqlite3.connect(tmp_path / "h.db") as connection:
        connection.execute("UPDATE rows SET body = ?", (body,))
    connection.close()
    other = open_history(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(UsageError, match="has a row that this version cannot read"):
        history.copy_to(other)
    assert list(other.every()) == []
    history.close()
    other.close()


def test_pruning_takes_whole_nights_and_their_rows(history: History) -> None:
    for day in (1, 2):
        history.begin(night(day, CASE))
        history.append([row(day)])
    assert history.prune(at(2, 0)) == (1, 1)
    assert [n.id for n in history.nights()] == ["n2"]
    assert [r.night for r in history.every()] == ["n2"]


def test_what_bisecting_found_goes_with_its_night(history: History, tmp_path: Path) -> None:
    """What was found first stays; it is copied, and leaves with its night."""
    for day in (1, 2):
        history.begin(night(day, CASE))
        history.blame(f"n{day}", {CASE: f"commit {day}"})
    history.blame("n2", {CASE: "another", "a/b": "commit 3"})
    found = {CASE: "commit 2", "a/b": "commit 3"}
    assert history.culprits("n2") == found
    other = open_history(f"sqlite:///{tmp_path}/other.db")
    history.copy_to(other)
    assert (other.culprits("n1"), other.culprits("n2")) == ({CASE: "commit 1"}, found)
    other.close()
    history.prune(at(2, 0), dry_run=True)
    assert history.culprits("n1") == {CASE: "commit 1"}
    history.prune(at(2, 0))
    assert (history.culprits("n1"), history.culprits("n2")) == ({}, found)


_FORK = multiprocessing.get_context("fork")  # of a process that has sqlalchemy


def _write(url: str, start: int, count: int, ready: Connection) -> None:
    history = open_history(url)
    ready.send(None)
    for i in range(count):
        history.append([row(1, case=f"a/{(start + i) % count}")])


def _ended(one: multiprocessing.process.BaseProcess) -> int | None:
    one.join(120)
    return one.exitcode


def test_many_writers_of_which_some_are_killed(
    url: str, record_property: pytest.RecordProperty
) -> None:
    """All write the same cases into one new history; every case is there once, none half."""
    seed = 7
    record_property("seed", seed)
    print(f"seed {seed}")
    draw = random.Random(seed)
    cases, writers = 40, 4 if url.startswith("postgresql") else 3

    def begun(index: int) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        ready, told = _FORK.Pipe(duplex=False)
        one = _FORK.Process(target=_write, args=(url, index * cases // writers, cases, told))
        one.start()
        return one, ready

    there = [begun(index) for index in range(writers)]
    for one, ready in there[: writers // 2]:
        ready.recv()
        time.sleep(draw.uniform(0, 0.05))
        one.kill()
    ends = [_ended(one) for one, _ in there]
    assert set(ends) <= {0, -signal.SIGKILL}
    assert 0 in ends
    history = open_history(url)
    names = Counter(one.case for one in history.every())
    history.close()
    assert names == {f"a/{i}": 1 for i in range(cases)}


def _nights(url: str, writer: int) -> None:
    more: dict[str, Any] = (
        {"suite": "every night", "origin": Origin("main", "c1")},
        {"suite": "weekly", "origin": Origin("main", "c1")},
        {"suite": "every night", "origin": Origin("topic", "c2")},
    )[writer]
    history = open_history(url)
    for day in range(1, 5):
        id = f"w{writer}-{day}"
        begun = replace(night(day, *(f"t/{n}" for n in range(6)), **more), id=id)
        history.begin(begun)
        verdict = ("PASS", "MISMATCH", "INFRA")[writer]
        for n in range(6):
            history.append([row(day, verdict, f"t/{n}", night=id, **more)])
        for case in compare(history, begun).cases:
            assert {r.night[:2] for r in (*case.earlier, *case.tries)} == {id[:2]}, case
            assert len(case.earlier) == day - 1
            wanted = {0: "passing", 1: "new" if day == 1 else "still failing", 2: "infrastructure"}
            assert str(case.state) == wanted[writer], (case.case, case.state)


@pytest.mark.parametrize("url", cases("sqlite", thorough=["postgresql"]), indirect=True)
def test_two_suites_and_a_branch_write_at_once_and_see_their_own_alone(url: str) -> None:
    """Three writers, the same cases, four nights each; no row of another one in any comparison."""
    open_history(url).close()
    writers = [_FORK.Process(target=_nights, args=(url, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    assert [_ended(writer) for writer in writers] == [0, 0, 0]
    history = open_history(url)
    assert len(list(history.every())) == 3 * 4 * 6
    assert len(history.nights(suite="every night", branch="main")) == 4
    history.close()


def test_a_database_that_goes_away_is_reported(pg_server: postgresql.Server) -> None:
    gone = open_history(pg_server.new_database(f"t{os.urandom(6).hex()}"))
    pg_server.stop()
    try:
        with pytest.raises(HistoryUnreachable) as caught:
            gone.append([row(1)])
    finally:
        pg_server.start()
    assert caught.value.kind == "history_unreachable"
    assert gone.append([row(1)]) == 1  # and when it is there again, it is used again
    gone.close()
