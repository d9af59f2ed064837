"""Protects nights on many machines: who gets which case, and what it costs when somebody is lost.

The schedulers and workers are real, each with a home of its own; the cases of most tests are not,
and those of ``test_farm.py`` are.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.nightly import dask_pool
from harness.nightly.dask_pool import DaskPool, SchedulerFailed
from harness.nightly.history.database import Recorder, open_history
from harness.nightly.history.nights import Planned, Row
from harness.nightly.history.store import History
from harness.nightly.night import NightRequest, begin, run_night
from harness.nightly.suite import NightJob, NightSuite, Shard
from harness.run.pipeline import RunOptions
from harness.run.record import exact_harness_revision
from tests.nightly import remote_doubles
from tests.nightly.cluster import Farm, farm, until
from tools.clone import project_root

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


def suite(*cases: tuple[str, str]) -> NightSuite:
    """Of (model, simulator)."""
    jobs = []
    for model, simulator in cases:
        case = Case(TARGET, model)
        sources = ("bundled",)
        jobs.append(NightJob(case, sources, (Planned(case.id),), simulator))
    return NightSuite("suite", str(cases), tuple(jobs), ())


def pool(
    url: str, wanted: NightSuite, call: object, store: Path, *, patience: float = 20.0
) -> DaskPool:
    return DaskPool(
        url,
        str(store),
        wanted.jobs,
        lambda _: None,
        patience=patience,
        call=call,  # type: ignore[arg-type]
    )


def run(wanted: NightSuite, made: DaskPool, history: History) -> list[Row]:
    try:
        night = begin(wanted, history, NightRequest())
        run_night(
            wanted,
            night,
            Shard(),
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


def test_the_workers_of_a_night_have_the_fvps_of_the_machine_that_began_it(
    one_farm: Farm, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a case for FVP or QEMU would run on one or the other, by who takes it. Of a case that no
    worker can do any more the tries end, and no night begins without such a worker."""
    there = fvp_in(tmp_path / "fvp")
    one_farm.worker("with", HIL_FVP_DIR=there)
    one_farm.worker("without")
    either = suite(*((f"{how}{i}", how) for i in range(4) for how in ("fvp", "auto")))
    rows = run(either, pool(one_farm.url, either, remote_doubles.who, tmp_path), history)
    assert {r.notes[0].split()[0] for r in rows} == {"home-without"}
    monkeypatch.setenv("HIL_FVP_DIR", there)
    rows = run(either, pool(one_farm.url, either, remote_doubles.who, tmp_path), history)
    assert {r.notes[0].split()[0] for r in rows} == {"home-with"}
    one_case = suite(("f", "fvp"))
    begun = pool(one_farm.url, one_case, remote_doubles.who, tmp_path, patience=1.0)
    one_farm.members[-2].kill()
    rows = run(one_case, begun, history)
    ends = sorted((r.attempt, r.cause.kind if r.cause else "PASS") for r in rows)
    assert ends == [(1, "worker_failed"), (2, "worker_failed")]
    assert all(FVP in r.cause.text for r in rows if r.cause)
    with pytest.raises(SchedulerFailed, match=f"has no worker with harness .* and {FVP}"):
        pool(one_farm.url, either, remote_doubles.who, tmp_path, patience=1.0)
    no_fvp = suite(("m", "qemu"))
    assert [
        r.good
        for r in run(no_fvp, pool(one_farm.url, no_fvp, remote_doubles.who, tmp_path), history)
    ] == [True]


def test_a_lost_worker_costs_what_it_was_given_a_try(
    one_farm: Farm, history: History, tmp_path: Path
) -> None:
    """Each case of the killed worker has a row that says so, and runs once more elsewhere."""
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
    one_farm.members[-2].kill()
    (tmp_path / "hold").unlink()
    night.join(120)
    lost = {r.case for r in rows if r.attempt == 2}
    assert f"{TARGET}/{begun.name.partition('-')[0]}" in lost
    assert 1 <= len(lost) <= made.room
    for case in (planned.case for planned in wanted.plan):
        tries = [(r.attempt, r.verdict.name) for r in rows if r.case == case]
        assert tries == ([(1, "INFRA"), (2, "PASS")] if case in lost else [(1, "PASS")])
    causes = [r.cause for r in rows if r.cause]
    assert {cause.kind for cause in causes} == {"worker_lost"}
    assert all("tcp://127.0.0.1" in cause.text for cause in causes)


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
    """Alone they are an error that says which has what, beside a right one they are reported."""
    other = tmp_path / "other"
    for name in ("harness", "targets"):
        shutil.copytree(
            project_root() / name,
            other / name,
            ignore=shutil.ignore_patterns("__pycache__", "runner"),
        )
    one_farm.worker("other", PYTHONPATH=str(other))
    wanted = suite(*((f"m{i}", "qemu") for i in range(4)))
    with pytest.raises(SchedulerFailed) as caught:
        pool(one_farm.url, wanted, remote_doubles.who, tmp_path)
    assert exact_harness_revision() in caught.value.message
    _, listed = caught.value.message.split("; ")
    address, _, has = listed.partition(" has ")
    assert address.startswith("tcp://")
    assert has.startswith("harness ")
    one_farm.worker("right")
    reported: list[str] = []
    made = DaskPool(
        one_farm.url, str(tmp_path), wanted.jobs, reported.append, call=remote_doubles.who
    )
    assert made.workers == 1
    assert {r.notes[0].split()[0] for r in run(wanted, made, history)} == {"home-right"}
    (line,) = reported
    assert f"the worker {address} is not used: it has {has}, not harness" in line


def test_a_worker_without_a_harness_stops_the_night(tmp_path: Path) -> None:
    (tmp_path / "none" / "harness").mkdir(parents=True)
    (tmp_path / "none" / "harness" / "__init__.py").touch()
    with farm(tmp_path) as own:
        own.worker("none", PYTHONPATH=str(tmp_path / "none"))
        with pytest.raises(SchedulerFailed, match=r"one of its workers .*No module named"):
            pool(own.url, suite(("m", "qemu")), remote_doubles.who, tmp_path)


def test_no_worker_at_all(one_farm: Farm, tmp_path: Path) -> None:
    with pytest.raises(SchedulerFailed, match="has no worker with harness") as caught:
        pool(one_farm.url, suite(("m", "qemu")), remote_doubles.who, tmp_path, patience=0.2)
    assert "dask worker --nthreads 1" in str(caught.value.hint)


def test_a_scheduler_that_goes_ends_the_night_and_loses_nothing(
    history: History, tmp_path: Path
) -> None:
    """What was judged is there, and the rest is run by whoever resumes."""
    wanted = suite(*((f"m{i}", "qemu") for i in range(3)))
    (tmp_path / "f").mkdir()
    with farm(tmp_path / "f") as own:
        own.worker("one")
        made = pool(own.url, wanted, remote_doubles.who, tmp_path)
        night = begin(wanted, history, NightRequest())

        def gone(row: Row, done: int, total: int) -> None:
            own.scheduler.process.send_signal(signal.SIGSTOP if done > 1 else signal.SIGKILL)

        try:
            with pytest.raises(SchedulerFailed, match="is gone in the middle"):
                run_night(
                    wanted,
                    night,
                    Shard(),
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
    assert history.unfinished(night)


def test_a_scheduler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "_ANSWER_SECONDS", 0.3)
    with pytest.raises(SchedulerFailed, match="does not answer"):
        pool("tcp://127.0.0.1:1", suite(("m", "qemu")), remote_doubles.who, tmp_path)


def test_a_scheduler_without_the_harness(tmp_path: Path) -> None:
    (tmp_path / "none" / "harness").mkdir(parents=True)
    (tmp_path / "none" / "harness" / "__init__.py").touch()
    wanted = suite(("m", "qemu"))
    with (
        farm(tmp_path, PYTHONPATH=str(tmp_path / "none")) as own,
        pytest.raises(SchedulerFailed, match="No module named"),
    ):
        pool(own.url, wanted, remote_doubles.who, tmp_path, patience=0.5)
