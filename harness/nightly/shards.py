"""Shards of a night: which one runs which job, and how they become one night."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.nightly.history.model import Night, Planned
from harness.nightly.suite import Job

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy, an extra

_NIGHTS = 5  # whose times count
_UNKNOWN_S = 10.0  # of a case, if no time at all is known


@dataclass(frozen=True)
class Shard:
    """``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Shard()


def parse_shard(text: str) -> Shard:
    """Raises UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 1000):
        raise UsageError(
            f"{text!r} is no shard", hint="1/4 is the first of four; up to 1000 are possible"
        )
    return Shard(int(number), int(count))


def usual_seconds(history: History) -> dict[str, float]:
    """The median seconds of each case over the last nights that ended."""
    ended = [night.id for night in history.nights(most=2 * _NIGHTS) if history.ended(night)]
    times: dict[str, list[float]] = defaultdict(list)
    for row in history.rows(ended[:_NIGHTS]):
        if row.settled and "total" in row.seconds:
            times[row.case].append(row.seconds["total"])
    return {name: median(seconds) for name, seconds in times.items()}


def longest_first(jobs: Sequence[Job], seconds: Mapping[str, float]) -> list[Job]:
    """So that no long one runs alone at the end."""
    return sorted(jobs, key=lambda job: -_seconds_of(job, seconds))


def distribute(
    jobs: Sequence[Job], shards: int, seconds: Mapping[str, float]
) -> tuple[Planned, ...]:
    """The plan with a shard for each job: the longest job first, each to the shard with least to do
    (Graham's rule: the longest shard is at most 4/3 of the best possible)."""
    load = [0.0] * shards
    shard_of: dict[Planned, int] = {}
    for job in longest_first(jobs, seconds):
        least = load.index(min(load))
        load[least] += _seconds_of(job, seconds)
        shard_of |= dict.fromkeys(job.planned, least + 1)
    return tuple(replace(one, shard=shard_of[one]) for job in jobs for one in job.planned)


def _seconds_of(job: Job, seconds: Mapping[str, float]) -> float:
    """Each row of a job has the time of the whole job."""
    known = [seconds[planned.case] for planned in job.planned if planned.case in seconds]
    return max(known) if known else median(seconds.values() or [_UNKNOWN_S])


@dataclass(frozen=True)
class Merged:
    """``rows``: how many are new; ``missing``: shards that did not end; ``doubled``: cases that
    more than one had run, of which the first is kept."""

    night: Night
    rows: int
    missing: tuple[Shard, ...]
    doubled: tuple[str, ...]


def merge(folders: Sequence[Path], history: History) -> Merged:
    """Adds the last night of each folder to ``history``. Raises UsageError for a folder without a
    night and for nights that are not shards of one, and what the histories do."""
    with ExitStack() as stack:
        parts = [stack.enter_context(closing(_history_in(folder))) for folder in folders]
        nights = [part.nights(most=1)[0] for part in parts]
        night = nights[0]
        for field in ("id", "suite_sha256", "shards"):
            if len({getattr(one, field) for one in nights}) > 1:
                raise UsageError(
                    f"{', '.join(one.id for one in nights)} are not shards of one night: they "
                    f"have another {field}",
                    hint="give every shard the same suite and the same --night",
                )
        new = sum(part.copy_to(history, night.id).rows for part in parts)
        tries = Counter((r.case, r.attempt) for part in parts for r in part.rows([night.id]))
    ended = history.endings(night.id)
    missing = [Shard(n, night.shards) for n in range(1, night.shards + 1) if n not in ended]
    doubled = dict.fromkeys(case for (case, _), times in tries.items() if times > 1)
    return Merged(night, new, tuple(missing), tuple(doubled))


def _history_in(folder: Path) -> History:
    from harness.nightly.history.database import open_history  # imports SQLAlchemy, an extra

    places = (folder, folder / "history.db", folder / ".hil" / "history.db", *folder.glob("*.db"))
    for file in filter(Path.is_file, places):
        history = open_history(f"sqlite:///{file.absolute()}")
        if history.nights(most=1):
            return history
        history.close()
    raise UsageError(
        f"{folder} holds no night: no history.db and no *.db of `hil history copy`",
        hint="name the state directory of the shard (.hil), or a folder that it is in",
        path=folder,
    )
