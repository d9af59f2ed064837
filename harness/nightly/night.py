"""A night: every job of a suite run once, each result in the history as soon as it is known.

Beginning a night of the same id again continues it: what is settled is not run again. Shards run on
machines of their own, each with a history, and become one night by ``merge``.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from queue import SimpleQueue

from harness.config.case import Case
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import source_named
from harness.nightly.history.compare import NIGHTS, Comparison, nights_before
from harness.nightly.history.database import Recorder, open_history
from harness.nightly.history.nights import Night, Origin, Planned, Row, last_tries
from harness.nightly.history.repository import renamed_files, started_from
from harness.nightly.history.store import History
from harness.nightly.pool import NotDone, Pool, Task, lost
from harness.nightly.suite import NightJob, NightSuite, Shard
from harness.run.bisect import Bisection, bisect
from harness.run.bundle import pack
from harness.run.pipeline import RunOptions
from harness.run.record import exact_harness_revision, host, now
from harness.system.artifact_cache import locked
from harness.system.files import disk_errors
from harness.system.paths import state_dir
from harness.system.progress import Progress

_NIGHTS = 5  # whose times are known
_UNKNOWN_S = 10.0  # of a case that never ran
MAX_BUNDLES = 50  # one fault that breaks everything would otherwise bundle every case
OnRow = Callable[[Row, int, int], None]  # the row, how many are done, of how many


@dataclass(frozen=True)
class NightRequest:
    """A request for a night.

    ``night``: its id, None for a new one. ``resume``: continue the last that did not end.
    ``folder``: in the user's repository, whose ``origin`` is known. ``base``: the branch that it is
    compared with, "" for its own."""

    shard: Shard = field(default_factory=Shard)
    night: str | None = None
    resume: bool = False
    folder: Path = field(default_factory=Path.cwd)
    origin: Origin = field(default_factory=Origin)
    base: str = ""


def begin(suite: NightSuite, history: History, request: NightRequest) -> Night:
    """Return the night as the history has it: a new one, or one to continue.

    Raises UsageError, also for other cases or shards; HistoryUnreachable."""
    known = history.night(request.night) if request.night else None
    if request.resume and (known := unfinished(suite, history, request.origin)) is None:
        raise UsageError(
            f"the history has no unfinished night of {suite.name}",
            hint="begin one without --resume",
        )
    if known is None:
        known = history.begin(_planned(suite, history, request))
    shards = f"number of shards, {known.shards}" if known.shards != request.shard.count else ""
    if another := "set of cases" if known.suite_sha256 != suite.sha256 else shards:
        raise UsageError(
            f"the night {known.id} of {known.suite}, begun at {known.began}, was started with "
            f"another {another}",
            hint="begin a new one, without --night and --resume",
            kind="other_suite",
            night=known.id,
        )
    return known


def _planned(suite: NightSuite, history: History, request: NightRequest) -> Night:
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    night = Night(
        id=request.night or f"{stamp}-{uuid.uuid4().hex[:6]}",
        suite=suite.name,
        suite_sha256=suite.sha256,
        began=now(),
        harness=exact_harness_revision(),
        host=host(),
        plan=distribute(suite.jobs, request.shard.count, usual_seconds(history)),
        excluded=suite.excluded,
        shards=request.shard.count,
        origin=request.origin,
        alarms=suite.alarms,
    )
    if request.base and request.base != request.origin.branch:
        nights = history.nights(suite=suite.name, branch=request.base, most=NIGHTS)
        base = started_from(request.folder, nights)
        night = replace(night, base="" if base is None else base.id)
    return replace(night, renames=_renames(suite, nights_before(history, night), request.folder))


def _renames(suite: NightSuite, before: Sequence[Night], folder: Path) -> dict[str, str]:
    """Return the suite's renames, and cases whose model file git sees as renamed since."""
    if not before or not before[0].origin.commit:
        return suite.renames
    there = {planned.case for planned in before[0].plan}
    found: dict[str, str] = {}
    for path, old in renamed_files(folder, before[0].origin.commit).items():
        for planned in suite.plan:
            case = planned.case.replace(f"/{path}", f"/{old}", 1)
            if planned.case not in there and case in there:
                found[planned.case] = case
    return found | suite.renames


def usual_seconds(history: History) -> dict[str, float]:
    """How long each case took when it last ran to an end, in the last nights."""
    nights = [night.id for night in history.nights(most=_NIGHTS)]
    known = (row for row in history.rows(nights) if row.good or row.bad)
    return {row.case: row.seconds["total"] for row in known if "total" in row.seconds}


def longest_first(jobs: Sequence[NightJob], seconds: Mapping[str, float]) -> list[NightJob]:
    """So that no long one runs alone at the end."""
    return sorted(jobs, key=lambda job: -_seconds_of(job, seconds))


def distribute(
    jobs: Sequence[NightJob], shards: int, seconds: Mapping[str, float]
) -> tuple[Planned, ...]:
    """Return the plan with a shard for each job, each to the shard with least to do.

    The longest job comes first (Graham's rule: the longest shard is at most 4/3 of the best
    possible)."""
    load = [0.0] * shards
    shard_of: dict[Planned, int] = {}
    for job in longest_first(jobs, seconds):
        least = load.index(min(load))
        load[least] += _seconds_of(job, seconds)
        shard_of |= dict.fromkeys(job.planned, least + 1)
    return tuple(replace(one, shard=shard_of[one]) for job in jobs for one in job.planned)


def _seconds_of(job: NightJob, seconds: Mapping[str, float]) -> float:
    """Each row of a job has the time of the whole job."""
    return seconds.get(job.planned[0].case, _UNKNOWN_S)


def unfinished(suite: NightSuite, history: History, origin: Origin) -> Night | None:
    """Return the last night of these very cases and this branch, when it did not end."""
    nights = history.nights(suite=suite.name, branch=origin.branch, most=20)
    last = next((night for night in nights if night.suite_sha256 == suite.sha256), None)
    return last if last is not None and history.unfinished(last) else None


def run_night(
    suite: NightSuite,
    night: Night,
    shard: Shard,
    options: RunOptions,
    pool: Pool,
    recorder: Recorder,
    on_row: OnRow,
) -> None:
    """Run the shard's cases that are not settled.

    Raises UsageError if another process does; what is wrong with a case is in its row."""
    with _alone(night, shard):
        mine = {planned.case: planned for planned in night.of_shard(shard.number)}
        last = last_tries(recorder.history.rows([night.id]))
        times = usual_seconds(recorder.history)
        jobs = longest_first([j for j in suite.jobs if j.planned[0].case in mine], times)
        plain, revision = replace(night, plan=()), exact_harness_revision()
        jobs = [replace(j, planned=tuple(mine[each.case] for each in j.planned)) for j in jobs]
        wholes = [Task(plain, job, options, 0, revision) for job in jobs]
        tasks = [task for whole in wholes for task in _left(whole, last)]
        done = sum(last[name].settled for name in mine if name in last)
        for row in _drive(tasks, pool, recorder):
            done += row.settled
            on_row(row, done, len(mine))
        recorder.append([], last=True)


def _left(whole: Task, last: Mapping[str, Row]) -> Iterator[Task]:
    names = [planned.case for planned in whole.job.planned]
    if fresh := [name for name in names if name not in last]:
        yield whole.again(fresh)
    for row in (last[name] for name in names if name in last):
        if not row.settled:
            yield replace(whole, attempt=row.attempt).again([row.case])


def _drive(tasks: Sequence[Task], pool: Pool, recorder: Recorder) -> Iterator[Row]:
    """Yield each row once it is in the history or the outbox."""
    running: dict[Future[tuple[Row, ...]], Task] = {}
    done: SimpleQueue[Future[tuple[Row, ...]]] = SimpleQueue()
    threads = ThreadPoolExecutor(pool.room)

    def start(task: Task) -> None:
        future = threads.submit(pool.run, task)
        running[future] = task
        future.add_done_callback(done.put)

    try:
        for task in tasks:
            start(task)
        while running:
            future = done.get()
            task = running.pop(future)
            try:
                rows = future.result()
            except NotDone as error:
                rows = lost(task, error)
            recorder.append(rows)
            again = [row.case for row in rows if not row.settled]
            if again:
                start(task.again(again))
            yield from rows
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # closing the pool ends what still runs


@contextmanager
def _alone(night: Night, shard: Shard) -> Iterator[None]:
    folder = state_dir() / "nights"
    with disk_errors("preparing the night"):
        folder.mkdir(parents=True, exist_ok=True)

    def refuse() -> None:
        raise UsageError(
            f"another process runs the night {night.id}, shard {shard}, at this moment",
            hint="wait for it; or begin a night of another id",
        )

    with locked(folder / f"{night.file_name}.{shard.number}", on_wait=refuse):
        yield


def merge(folders: Sequence[Path], history: History) -> tuple[Night, list[Shard], list[str]]:
    """Add the last night of each folder to ``history``.

    Returns the night, its shards that did not end, and the cases that several shards ran: the first
    is kept. Raises UsageError for a folder without a night and for nights that are not shards of
    one, and what the histories raise."""
    with ExitStack() as stack:
        parts = [stack.enter_context(closing(_history_in(folder))) for folder in folders]
        nights = [part.nights(most=1)[0] for part in parts]
        if len({(night.id, night.suite_sha256, night.shards) for night in nights}) > 1:
            raise UsageError(
                f"{', '.join(night.id for night in nights)} are not shards of one night",
                hint="give every shard the same suite and the same --night",
            )
        for part in parts:
            part.copy_to(history, nights[0].id)
        tries = Counter((r.case, r.attempt) for part in parts for r in part.rows([nights[0].id]))
    doubled = [case for (case, _), times in tries.items() if times > 1]
    unfinished = sorted({planned.shard for planned in history.unfinished(nights[0])})
    return nights[0], [Shard(number, nights[0].shards) for number in unfinished], doubled


def _history_in(folder: Path) -> History:
    for file in filter(Path.is_file, (folder, *folder.glob("*.db"), folder / ".hil/history.db")):
        history = open_history(f"sqlite:///{file.absolute()}")
        if history.nights(most=1):
            return history
        history.close()
    raise UsageError(
        f"{folder} holds no night: no history.db and no *.db of `hil history copy`",
        hint="name the state directory of the shard (.hil), or a folder that it is in",
        path=folder,
    )


def pack_failures(rows: Sequence[Row], folder: Path) -> Iterator[tuple[str, Path | str]]:
    """Yield the case of each bad row and its bundle in the new ``folder``, or why it has none.

    Raises DiskError."""
    bad = [row for row in rows if row.bad]
    if bad:
        with disk_errors("making the folder of the bundles"):
            folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(bad):
        if number >= MAX_BUNDLES:
            yield row.case, f"{MAX_BUNDLES} failures have one"
        elif row.run_dir is None:
            yield row.case, "nothing was run"
        else:
            bundle = folder / f"{Path(row.run_dir).name}.tar.zst"
            try:
                pack(Path(row.run_dir), bundle)
                yield row.case, bundle
            except HarnessError as error:
                yield row.case, error.message


MOST = 3  # failures: what is new in one night mostly has one commit


def culprits(
    comparison: Comparison, firmware: FirmwareChoice, minutes: float, progress: Progress
) -> Iterator[tuple[str, str]]:
    """Bisects the first new failures that have a good and a bad commit of a checkout.

    Yields the case and its first bad commit, or why none was found. Checks the time before each
    revision."""
    end = time.monotonic() + 60 * minutes

    def watched(message: str) -> None:
        if time.monotonic() > end:
            raise InfraError(f"the suite's {minutes:g} minutes were over", kind="out_of_time")
        progress(message)

    new = [case.since for case in comparison.cases if case.state.is_new and case.since is not None]
    ends = [(since.first, *since.commits) for since in new if since.commits is not None]
    for row, good, bad in ends[:MOST]:
        case = Case(row.target, row.model)
        options = RunOptions(firmware=replace(firmware, sources=(source_named(row.source),)))
        try:
            yield row.case, _sentence(bisect(case, good, bad, options, progress=watched))
        except HarnessError as error:
            yield row.case, f"no commit was found: {error.message}"


def _sentence(found: Bisection) -> str:
    if found.first is not None:
        commit = found.first.commit
        return f"the first bad commit is {commit} ({commit.author})"
    names = ", ".join(commit.sha[:10] for commit in found.candidates[:5])
    return f"the first bad commit is one of {len(found.candidates)}: {names}"
