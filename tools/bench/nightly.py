"""``hil bench nightly``: a night beside its simulations, two workers beside one, and a history of
100,000 runs beside one of ten."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness.config.case import Case
from harness.core.errors import InfraError
from harness.firmware.names import BUNDLED
from harness.nightly.history.compare import compare
from harness.nightly.history.database import Recorder, open_history
from harness.nightly.history.nights import Night, Planned, Row
from harness.nightly.history.store import History
from harness.nightly.night import NightRequest, begin, run_night
from harness.nightly.pool import LocalPool, Task
from harness.nightly.suite import NightJob, NightSuite, Shard
from harness.run.pipeline import RunOptions, run_cases
from harness.system.progress import Progress
from tools.bench.farm import empty_row, farm, measure, night_at
from tools.bench.ratios import MODELS, TARGET, Results
from tools.bench.ratios import Row as Ratio

_RUNS = 100_000
CASES = 250  # of a night
_REPEATS = 5
_EMPTY = 200  # tasks of a night in which nothing is done
_SUITE = (*MODELS, "add", "softmax", "linear")


def measure_nightly(progress: Progress) -> Results:
    with tempfile.TemporaryDirectory() as scratch:
        nights, real = _workers(Path(scratch), progress)
        rows, notes = _histories(Path(scratch), progress)
        per_case = overhead(Path(scratch), progress)
        with _history(Path(scratch) / "f.db") as history:
            elsewhere = measure(Path(scratch), history, _suite, progress)
    longest = max(len(json.dumps(asdict(row))) for row in real)
    return Results(
        (*nights, *rows),
        (
            *notes,
            f"what a night itself takes for a case: {per_case * 1000:.1f} ms",
            *elsewhere,
            f"the longest row of {len(real)} real ones: {longest} bytes",
        ),
    )


def _suite(models: tuple[str, ...]) -> NightSuite:
    cases = [Case(TARGET, model) for model in models]
    jobs = tuple(NightJob(case, (BUNDLED,), (Planned(case.id),)) for case in cases)
    return NightSuite("bench", "bench", jobs, ())


def _workers(scratch: Path, progress: Progress) -> tuple[list[Ratio], list[Row]]:
    """Warm nights of one and of two workers; what they take beyond their simulations."""
    suite = _suite(_SUITE)
    progress("a first run, so that everything is cached")
    run_cases([job.case for job in suite.jobs], RunOptions())
    took: dict[int, float] = {}
    rows: list[Row] = []
    with _history(scratch / "w.db") as history:
        for workers in (1, 2):
            progress(f"a night of {len(suite.jobs)} cases, {workers} at a time")
            night = begin(suite, history, NightRequest())
            pool = LocalPool(workers)
            started = time.monotonic()
            try:
                run_night(
                    suite,
                    night,
                    Shard(),
                    RunOptions(),
                    pool,
                    Recorder(history),
                    lambda *_: None,
                )
            finally:
                took[workers] = time.monotonic() - started
                pool.close()
            rows = history.rows([night.id])
        with farm(scratch / "two", 2) as two:
            for round in ("for the first time", "warm"):
                progress(f"the same with two workers of dask, {round}")
                took[0], _, others = night_at(two, suite, history, workers=2)
    rows += others
    failed = [row.case for row in rows if not row.good]
    if failed:
        raise InfraError(f"a night to be measured did not pass: {', '.join(failed)}")
    simulated = sum(row.seconds["simulate"] for row in rows if row not in others)
    return [
        Ratio("a warm night of 7, two workers beside one", took[2], took[1], "s"),
        Ratio("two workers, beside the sum of simulations", took[2], simulated, "s"),
        Ratio("two workers of dask beside two local ones", took[0], took[2], "s"),
    ], rows


class _Idle:
    """A pool that does nothing, at once."""

    workers = room = 2

    def run(self, task: Task) -> tuple[Row, ...]:
        (one,) = task.job.planned
        return (empty_row(task.night.id, one.case, datetime.now(timezone.utc)),)

    def close(self) -> None: ...


def overhead(scratch: Path, progress: Progress, count: int = _EMPTY) -> float:
    """Seconds for each case of a night whose cases take none: planning, keeping, telling."""
    progress(f"a night of {count} cases that take no time")
    suite = _suite(tuple(f"m{i}" for i in range(count)))
    with _history(scratch / "o.db") as history:
        started = time.monotonic()
        night = begin(suite, history, NightRequest())
        run_night(
            suite,
            night,
            Shard(),
            RunOptions(),
            _Idle(),
            Recorder(history),
            lambda *_: None,
        )
        return (time.monotonic() - started) / count


def _histories(scratch: Path, progress: Progress) -> tuple[list[Ratio], list[str]]:
    """``hil history CASE``, the page of the last night, and the look-ups alone, among many runs and
    among few; in PostgreSQL, too, when ``$HIL_BENCH_HISTORY`` names an empty database of one."""
    ratios, notes = [], []
    small = f"sqlite:///{scratch}/small.db"
    fill(small, 1)
    urls = {"SQLite": f"sqlite:///{scratch}/large.db"}
    if "HIL_BENCH_HISTORY" in os.environ:
        urls["PostgreSQL"] = os.environ["HIL_BENCH_HISTORY"]
    verbs = {
        "history CASE": ("history", "t/m0"),
        "nightly page": ("nightly", "page", "-o", f"{scratch}/night.html"),
    }
    few = {verb: _cpu_seconds(words, small) for verb, words in verbs.items()}
    for name, url in urls.items():
        progress(f"writing {_RUNS} runs into {name}")
        fill(url, _RUNS // CASES)
        ratios += [
            Ratio(
                f"`hil {verb}` of 100,000 runs, {name}",
                _cpu_seconds(words, url),
                few[verb],
                "s of CPU",
            )
            for verb, words in verbs.items()
        ]
        with _opened(url) as history:
            started = time.monotonic()
            history.of_case("t/m0", 30, suite="bench", branch="")
            one = time.monotonic() - started
            started = time.monotonic()
            night = history.nights(most=1)[0]
            compare(history, night)
            page = time.monotonic() - started
        notes.append(
            f"{name}, 100,000 runs: the look-up of a case {one * 1000:.1f} ms; a night "
            f"and what was before it {page * 1000:.0f} ms"
        )
    return ratios, notes


def fill(url: str, nights: int) -> None:
    first = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with _opened(url) as history:
        for number in range(nights):
            at = first + timedelta(days=number)
            plan = tuple(Planned(f"t/m{i}") for i in range(CASES))
            night = Night(f"n{number}", "bench", "bench", at.isoformat(), "h", "desk", plan)
            history.begin(night)
            history.append([empty_row(night.id, one.case, at) for one in plan])


def _cpu_seconds(words: tuple[str, ...], url: str) -> float:
    """Seconds of CPU that a verb of ``hil`` takes as a process: what others do does not count."""
    argv = [sys.executable, "-m", "harness", *words, "--history", url]
    took = []
    for _ in range(_REPEATS):
        before = _of_children()
        done = subprocess.run(argv, capture_output=True, check=False)
        took.append(_of_children() - before)
        if done.returncode != 0:
            raise InfraError(f"`hil {words[0]}` ended with {done.returncode}")
    return statistics.median(took)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _history(file: Path) -> Iterator[History]:
    with _opened(f"sqlite:///{file}") as history:
        yield history


@contextmanager
def _opened(url: str) -> Iterator[History]:
    history = open_history(url)
    try:
        yield history
    finally:
        history.close()
