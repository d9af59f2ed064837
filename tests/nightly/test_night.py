"""Protects the course of a night: each case once, INFRA twice, and going on where it was left.

Which verdicts come is said by the tests here, behind the interface of a pool; what really runs is
in ``test_two_nights.py`` and ``test_kills.py``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.core.verdict import Verdict
from harness.nightly.history.database import Recorder, open_history
from harness.nightly.history.nights import Origin, Planned, Row
from harness.nightly.history.store import History
from harness.nightly.night import (
    NightRequest,
    begin,
    run_night,
    unfinished,
)
from harness.nightly.pool import LocalPool, Task, WorkerLost, lost
from harness.nightly.suite import NightJob, NightSuite, Shard
from harness.run.pipeline import RunOptions
from tests.nightly.history.made import night, row

BOTH = ("bundled", "executorch")


def job(model: str, sources: tuple[str, ...] = BOTH[:1]) -> NightJob:
    case = Case("t", model)
    return NightJob(
        case,
        sources,
        tuple(Planned(case.id if s is BOTH[0] else f"{case.id} [{s}]") for s in sources),
    )


def suite(*models: str) -> NightSuite:
    return NightSuite("suite", "".join(models), tuple(map(job, models)), ())


class Scripted:
    """A pool of one worker that ends each try as ``ends`` has it; "lost" is the worker itself."""

    def __init__(self, ends: Mapping[str, str | tuple[str, ...]], stop_after: int = 99) -> None:
        self.workers = self.room = 1
        self.given: list[tuple[str, int]] = []
        self._ends = ends
        self._stop_after = stop_after

    def run(self, task: Task) -> tuple[Row, ...]:
        if len(self.given) >= self._stop_after:
            raise KeyboardInterrupt
        rows = []
        for one in task.job.planned:
            self.given.append((one.case, task.attempt))
            said = self._ends.get(one.case, "PASS")
            verdict = said if isinstance(said, str) else said[task.attempt - 1]
            if verdict == "lost":
                raise WorkerLost
            rows.append(row(1, verdict, one.case, attempt=task.attempt))
        return tuple(replace(r, night=task.night.id) for r in rows)

    def close(self) -> None: ...


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return open_history(f"sqlite:///{tmp_path}/h.db")


Run = Callable[..., list[tuple[str, str, int]]]


@pytest.fixture
def run(history: History) -> Run:
    def call(
        wanted: NightSuite,
        pool: Scripted,
        asked: NightRequest = NightRequest(),  # noqa: B008 - frozen
    ) -> list[tuple[str, str, int]]:
        night = begin(wanted, history, asked)
        recorder = Recorder(history)
        told: list[tuple[int, int]] = []
        run_night(
            wanted,
            night,
            asked.shard,
            RunOptions(),
            pool,
            recorder,
            lambda _, done, total: told.append((done, total)),
        )
        assert told == sorted(told)
        assert not told or told[-1][0] == told[-1][1]
        return [(r.case, r.verdict.name, r.attempt) for r in history.rows([night.id])]

    return call


def test_each_case_is_run_once_and_infra_twice(run: Run) -> None:
    pool = Scripted({"t/b": ("INFRA", "PASS"), "t/c": "INFRA", "t/d": "MISMATCH"})
    assert sorted(run(suite("a", "b", "c", "d"), pool)) == [
        ("t/a", "PASS", 1),
        ("t/b", "INFRA", 1),
        ("t/b", "PASS", 2),
        ("t/c", "INFRA", 1),
        ("t/c", "INFRA", 2),
        ("t/d", "MISMATCH", 1),
    ]


def test_only_the_firmware_that_met_infra_is_tried_again(run: Run) -> None:
    both = NightSuite("suite", "x", (job("a", BOTH),), ())
    pool = Scripted({"t/a [executorch]": ("INFRA", "FAULT")})
    assert run(both, pool) == [
        ("t/a", "PASS", 1),
        ("t/a [executorch]", "INFRA", 1),
        ("t/a [executorch]", "FAULT", 2),
    ]
    assert pool.given == [("t/a", 1), ("t/a [executorch]", 1), ("t/a [executorch]", 2)]


def test_a_worker_that_is_lost_costs_one_try(run: Run, history: History) -> None:
    assert run(suite("a", "b"), Scripted({"t/a": ("lost", "PASS")})) == [
        ("t/a", "INFRA", 1),
        ("t/b", "PASS", 1),
        ("t/a", "PASS", 2),
    ]
    first = history.rows([history.nights()[0].id])
    assert {r.cause.kind for r in first if r.cause} == {"worker_lost"}


def test_what_was_judged_is_not_run_again(run: Run, history: History) -> None:
    four = suite("a", "b", "c", "d")
    with pytest.raises(KeyboardInterrupt):
        run(four, Scripted({"t/b": "INFRA"}, stop_after=2), NightRequest(night="tonight"))
    assert unfinished(four, history, Origin()) is not None
    pool = Scripted({})
    assert sorted(run(four, pool, NightRequest(resume=True))) == [
        ("t/a", "PASS", 1),
        ("t/b", "INFRA", 1),
        ("t/b", "PASS", 2),
        ("t/c", "PASS", 1),
        ("t/d", "PASS", 1),
    ]
    assert sorted(pool.given) == [("t/b", 2), ("t/c", 1), ("t/d", 1)]
    assert unfinished(four, history, Origin()) is None
    assert run(four, again := Scripted({}), NightRequest(night="tonight"))
    assert again.given == []


def test_shards_have_every_case_once_between_them(run: Run, history: History) -> None:
    five = suite("a", "b", "c", "d", "e")
    for number in (1, 2):
        run(five, Scripted({}), NightRequest(Shard(number, 2), "tonight"))
    assert sorted(r.case for r in history.rows(["tonight"])) == [f"t/{m}" for m in "abcde"]


def test_a_night_is_gone_on_with_the_same_cases_alone(run: Run, history: History) -> None:
    run(suite("a"), Scripted({}), NightRequest(night="tonight"))
    with pytest.raises(UsageError, match="was started with another set of cases") as caught:
        begin(suite("a", "b"), history, NightRequest(night="tonight"))
    assert (caught.value.kind, caught.value.facts["night"]) == ("other_suite", "tonight")
    with pytest.raises(UsageError, match="was started with another number of shards, 1"):
        begin(suite("a"), history, NightRequest(Shard(1, 2), "tonight"))
    with pytest.raises(UsageError, match="no unfinished night of suite"):
        begin(suite("a"), history, NightRequest(resume=True))


def test_two_processes_are_not_at_one_shard(run: Run, history: History) -> None:
    class Nested(Scripted):
        def run(self, task: Task) -> tuple[Row, ...]:
            with pytest.raises(UsageError, match="another process runs the night tonight"):
                run(suite("a"), Scripted({}), NightRequest(night="tonight"))
            return super().run(task)

    assert run(suite("a"), Nested({}), NightRequest(night="tonight")) == [("t/a", "PASS", 1)]


def test_a_process_that_is_killed_costs_its_own_case_alone() -> None:
    """Two real workers: one ends in the middle of what it does, the other does not notice."""
    pool = LocalPool(2)
    nowhere = Task(night(1), job("nothing"), RunOptions(), 1, "h")
    with ThreadPoolExecutor(2) as threads, closing(pool):
        list(threads.map(pool.run, (nowhere, nowhere)))
        first, second = multiprocessing.active_children()
        for process in (first, second):
            assert process.pid is not None
            os.kill(process.pid, signal.SIGSTOP)  # or it is done before the other is killed
        answers = [threads.submit(pool.run, nowhere) for _ in range(2)]
        first.kill()
        assert second.pid is not None
        os.kill(second.pid, signal.SIGCONT)
        (gone,) = (answer for answer in answers if answer.exception(120))
        (kept,) = (answer for answer in answers if answer is not gone)
        with pytest.raises(WorkerLost):
            gone.result()
        (kept_row,) = kept.result()
        assert kept_row.verdict is Verdict.NO_VERDICT  # no such target
        assert kept_row.cause is not None
        assert "unknown target 't'" in kept_row.cause.text
        assert list(threads.map(pool.run, (nowhere, nowhere)))  # one of them in a new process
        assert second in multiprocessing.active_children()
        assert first not in multiprocessing.active_children()


def test_a_night_knows_its_branch_its_base_and_what_was_renamed(
    run: Run, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said by the suite, or found by git since the commit of the night before."""
    main, topic = Origin("main", "c1"), Origin("topic", "c2", pull_request="7")
    run(suite("a", "old.py", "b"), Scripted({}), NightRequest(night="first", origin=main))
    monkeypatch.setattr("harness.nightly.night.renamed_files", lambda *_: {"new.py": "old.py"})
    renamed = replace(suite("a", "new.py", "c"), renames={"t/c": "t/b"})
    now = begin(renamed, history, NightRequest(origin=topic, base="main"))
    assert (now.origin, now.base) == (topic, "first")
    assert now.renames == {"t/new.py": "t/old.py", "t/c": "t/b"}
    assert unfinished(renamed, history, main) is None
    assert unfinished(renamed, history, topic) == now
    assert begin(renamed, history, NightRequest(origin=main, base="main")).base == ""


def test_a_row_knows_whose_it_is(history: History) -> None:
    """Of a task that never came to a worker, too."""
    origin = Origin("main", "c1", dirty=True)
    task = Task(night(1, suite="mine", origin=origin), job("a"), RunOptions(), 1, "h")
    (told,) = lost(task, WorkerLost())
    assert (told.suite, told.origin) == ("mine", origin)
    history.append([told])
    assert history.last_of("t/a") == {"suite": "mine", "branch": "main"}
    assert history.last_of("t/a", branch="topic") is None
