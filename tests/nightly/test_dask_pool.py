"""Protects nights on many machines: who gets which case, and what it costs when somebody is lost.

The schedulers and workers are real, each with a home of its own; the cases of most tests are not,
and those of ``test_farm.py`` are.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.nightly.dask_pool import (
    Cluster,
    DaskPool,
    FvpChoice,
    NoWorkers,
    SchedulerFailed,
    SchedulerLost,
    fvp_label,
)
from harness.nightly.history.database import open_history
from harness.nightly.history.model import Planned, Row
from harness.nightly.history.store import History
from harness.nightly.night import Wanted, begin, run_night
from harness.nightly.outbox import Recorder
from harness.nightly.shards import WHOLE
from harness.nightly.suite import Job, Suite
from harness.run.pipeline import RunOptions
from harness.run.record import exact_harness_revision
from harness.system.paths import project_root
from tests.nightly import remote_doubles
from tests.nightly.cluster import Farm, farm, until

TARGET, FVP = "corstone-300-m55", "FVP_Corstone_SSE-300_Ethos-U55"
Night = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def shared_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with farm(tmp_path_factory.mktemp("farm")) as made:
        yield made


@pytest.fixture
def one_farm(shared_farm: Farm) -> Iterator[Farm]:
    """The scheduler is everybody's, its workers are the test's."""
    before = len(shared_farm.members)
    yield shared_farm
    for one in shared_farm.members[before:]:
        one.kill()


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    opened = open_history(f"sqlite:///{tmp_path}/h.db")
    yield opened
    opened.close()


def suite(*cases: tuple[str, str]) -> Suite:
    """Of (model, simulator)."""
    jobs = []
    for model, simulator in cases:
        case = Case(TARGET, model)
        sources = ("bundled",)
        jobs.append(Job(case, sources, (Planned(case.id),), simulator))
    return Suite("suite", str(cases), tuple(jobs), ())


def pool(url: str, wanted: Suite, call: object, store: Path, **options: float) -> DaskPool:
    said = {"patience": 20.0, "connect": 5.0, **options}
    cluster = Cluster(url, str(store), **said)
    return DaskPool(cluster, exact_harness_revision(), wanted.jobs, lambda _: None, call)  # type: ignore[arg-type]


def run(wanted: Suite, made: DaskPool, history: History) -> list[Row]:
    try:
        night = begin(wanted, history, Wanted())
        run_night(
            wanted,
            night,
            WHOLE,
            RunOptions(),
            made,
            Recorder(history),
            lambda *_: None,
        )
        return history.rows([night.id])
    finally:
        made.close()


def fvp_in(folder: Path) -> str:
    folder.mkdir()
    (folder / FVP).write_text("#!/bin/sh\nexit 1\n")
    (folder / FVP).chmod(0o755)
    return str(folder)


def test_cases_for_an_fvp_go_where_it_is(one_farm: Farm, history: History, tmp_path: Path) -> None:
    one_farm.worker("with", HIL_FVP_DIR=fvp_in(tmp_path / "fvp"))
    one_farm.worker("without")
    wanted = suite(*((f"{how}{i}", how) for i in range(8) for how in ("fvp", "qemu", "auto")))
    made = pool(one_farm.url, wanted, remote_doubles.who, tmp_path)
    rows = run(wanted, made, history)
    done = {
        how: [r.notes[0] for r in rows if r.model.startswith(how)]
        for how in ("fvp", "qemu", "auto")
    }
    assert done["fvp"] == ["home-with fvp"] * 8
    assert done["auto"] == ["home-with fvp"] * 8  # the same simulator, whoever is free
    assert len(done["qemu"]) == 8
    assert "home-without qemu" in done["qemu"]


def test_what_a_case_runs_on_does_not_hang_on_who_takes_it() -> None:
    """Where nobody has the FVP, QEMU is named; what asks for the FVP by name says it is missing."""
    boards = FvpChoice()
    auto, named, other = (suite((how, how)).jobs[0] for how in ("auto", "fvp", "qemu"))
    assert [boards.of(job) for job in (auto, named, other)] == [FVP, FVP, None]
    none: frozenset[str] = frozenset()
    assert boards.settle(auto, none) == (replace(auto, simulator="qemu"), None)
    assert boards.settle(named, none) == (named, None)
    there = frozenset([fvp_label(FVP)])
    assert boards.settle(auto, there) == (replace(auto, simulator="fvp"), FVP)
    assert boards.settle(other, there) == (other, None)
    host = replace(auto, case=Case("host", "add"))
    assert boards.settle(host, there) == (host, None)
    torn = replace(auto, case=Case("boards/none.yaml", "add"))
    assert boards.settle(torn, there) == (torn, None)


def test_a_lost_worker_costs_its_case_again_and_nothing_else(
    one_farm: Farm, history: History, tmp_path: Path
) -> None:
    """Two cases had begun, more waited; of the worker that is killed one had."""
    (tmp_path / "hold").touch()
    one_farm.worker("first")
    wanted = suite(*((f"m{i}", "qemu") for i in range(6)))
    made = pool(one_farm.url, wanted, remote_doubles.stuck, tmp_path)
    rows: list[Row] = []
    night = threading.Thread(
        target=lambda: rows.extend(run(wanted, made, open_history(history.url)))
    )
    night.start()
    until(lambda: list(tmp_path.glob("m*-1")))
    (begun,) = tmp_path.glob("m*-1")
    one_farm.worker("second")
    until(lambda: len(list(tmp_path.glob("m*-1"))) == 2)
    one_farm.members[-2].kill()
    (tmp_path / "hold").unlink()
    night.join(120)
    tries = sorted((r.case, r.attempt, r.verdict.name) for r in rows)
    lost = f"{TARGET}/{begun.name.partition('-')[0]}"
    others = [(f"{TARGET}/m{i}", 1, "PASS") for i in range(6) if f"{TARGET}/m{i}" != lost]
    assert tries == sorted([(lost, 1, "INFRA"), (lost, 2, "PASS"), *others])
    (cause,) = [r.cause for r in rows if r.cause]
    assert cause.kind == "worker_lost"
    assert "tcp://127.0.0.1" in cause.text


def test_a_case_that_no_worker_can_do_any_more_ends(
    one_farm: Farm, history: History, tmp_path: Path
) -> None:
    """The only one with the FVP is gone, those without are there."""
    having = one_farm.worker("with", HIL_FVP_DIR=fvp_in(tmp_path / "fvp"))
    one_farm.worker("without")
    wanted = suite(("f", "fvp"), ("q", "qemu"))
    made = pool(one_farm.url, wanted, remote_doubles.who, tmp_path, patience=1.0)
    having.kill()
    rows = run(wanted, made, history)
    ends = sorted((r.model, r.attempt, r.cause.kind if r.cause else "PASS") for r in rows)
    assert ends == [("f", 1, "no_worker_for"), ("f", 2, "no_worker_for"), ("q", 1, "PASS")]
    assert any(FVP in r.cause.text for r in rows if r.cause)


def test_a_worker_that_cannot_do_a_task_says_why(
    one_farm: Farm, history: History, tmp_path: Path
) -> None:
    one_farm.worker("one")
    wanted = suite(("m", "qemu"))
    rows = run(wanted, pool(one_farm.url, wanted, remote_doubles.broken, tmp_path), history)
    assert [(r.attempt, r.cause.kind) for r in rows if r.cause] == [
        (1, "worker_failed"),
        (2, "worker_failed"),
    ]
    assert "a defect of the worker's" in (rows[0].cause.text if rows[0].cause else "")


def test_workers_of_another_harness_get_nothing(
    one_farm: Farm, history: History, tmp_path: Path
) -> None:
    """One of another version, one with no harness at all; alone they are an error that says which
    has what, beside a right one they are told."""
    other = tmp_path / "other"
    for name in ("harness", "targets"):
        shutil.copytree(
            project_root() / name,
            other / name,
            ignore=shutil.ignore_patterns("__pycache__", "runner"),
        )
    (tmp_path / "none" / "harness").mkdir(parents=True)
    (tmp_path / "none" / "harness" / "__init__.py").touch()
    strangers = [
        one_farm.worker("other", PYTHONPATH=str(other)),
        one_farm.worker("none", PYTHONPATH=str(tmp_path / "none")),
    ]
    wanted = suite(*((f"m{i}", "qemu") for i in range(4)))
    with pytest.raises(NoWorkers) as caught:
        pool(one_farm.url, wanted, remote_doubles.who, tmp_path)
    print(caught.value.others)
    assert len(caught.value.others) == len(strangers)
    assert exact_harness_revision() in caught.value.message
    assert any("No module named" in why for why in caught.value.others.values())
    assert any(why.startswith("harness ") for why in caught.value.others.values())
    assert "restart those workers" in str(caught.value.hint)
    one_farm.worker("right")
    told: list[str] = []
    cluster = Cluster(one_farm.url, str(tmp_path))
    made = DaskPool(cluster, exact_harness_revision(), wanted.jobs, told.append, remote_doubles.who)
    assert made.workers == 1
    assert {r.notes[0].split()[0] for r in run(wanted, made, history)} == {"home-right"}
    assert len(told) == 2
    assert all("is not used" in one for one in told)


def test_no_worker_at_all(one_farm: Farm, tmp_path: Path) -> None:
    with pytest.raises(NoWorkers, match="has no worker with harness") as caught:
        pool(one_farm.url, suite(("m", "qemu")), remote_doubles.who, tmp_path, patience=0.2)
    assert "dask worker URL --nthreads 1" in str(caught.value.hint)


def test_a_scheduler_that_goes_ends_the_night_and_loses_nothing(
    history: History, tmp_path: Path
) -> None:
    """What was judged is there, and the rest is run by whoever resumes."""
    wanted = suite(*((f"m{i}", "qemu") for i in range(3)))
    (tmp_path / "f").mkdir()
    with farm(tmp_path / "f") as own:
        own.worker("one")
        made = pool(own.url, wanted, remote_doubles.who, tmp_path)
        night = begin(wanted, history, Wanted())

        def gone(row: Row, done: int, total: int) -> None:
            own.scheduler.process.send_signal(signal.SIGSTOP if done > 1 else signal.SIGKILL)

        try:
            with pytest.raises(SchedulerLost, match="is gone in the middle"):
                run_night(
                    wanted,
                    night,
                    WHOLE,
                    RunOptions(),
                    made,
                    Recorder(history),
                    gone,
                )
        finally:
            made.close()
    rows = history.rows([night.id])
    assert 1 <= len(rows) < 3
    assert all(row.good for row in rows)
    assert not history.ended(night)


def test_a_scheduler_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SchedulerFailed, match="does not answer"):
        pool("tcp://127.0.0.1:1", suite(("m", "qemu")), remote_doubles.who, tmp_path, connect=0.3)


def test_a_scheduler_without_the_harness(tmp_path: Path) -> None:
    (tmp_path / "none" / "harness").mkdir(parents=True)
    (tmp_path / "none" / "harness" / "__init__.py").touch()
    wanted = suite(("m", "qemu"))
    with (
        farm(tmp_path, PYTHONPATH=str(tmp_path / "none")) as own,
        pytest.raises(SchedulerFailed, match="No module named"),
    ):
        pool(own.url, wanted, remote_doubles.who, tmp_path, patience=0.5)
