"""Shards of a night: which one runs which job, in which order, and how they become one night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.nightly.history.model import Night, Planned, Row, last_tries
from harness.nightly.suite import Job

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy, an extra

_NIGHTS = 5  # whose times count
_UNKNOWN_S = 10.0  # of a case, if no time at all is known


class BadShard(UsageError):
    """``text`` is not i/n."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(
            f"{text!r} is no shard", hint="1/4 is the first of four; up to 1000 are possible"
        )


@dataclass(frozen=True)
class Shard:
    """``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Shard()


def parse_shard(text: str) -> Shard:
    """Raises BadShard."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 1000):
        raise BadShard(text)
    return Shard(int(number), int(count))


def usual_seconds(history: History) -> dict[str, float]:
    """The median seconds of each case over the last nights that ended."""
    ended = [night for night in history.nights(most=2 * _NIGHTS) if history.ended(night)]
    times: dict[str, list[float]] = {}
    for night in ended[:_NIGHTS]:
        for name, row in last_tries(history.rows([night.id])).items():
            if "total" in row.seconds:
                times.setdefault(name, []).append(row.seconds["total"])
    return {name: median(seconds) for name, seconds in times.items()}


def distribute(
    jobs: Sequence[Job], shards: int, seconds: Mapping[str, float]
) -> tuple[Planned, ...]:
    """The plan with a shard for each job: the longest job first, each to the shard with least to do
    (Graham's rule: the longest shard is at most 4/3 of the best possible)."""
    load = [0.0] * shards
    of_job: dict[str, int] = {}
    for job in sorted(jobs, key=lambda job: (-_time(job, seconds), job.case.id)):
        least = min(range(shards), key=lambda shard: load[shard])
        load[least] += _time(job, seconds)
        of_job[job.case.id] = least + 1
    return tuple(
        replace(planned, shard=of_job[job.case.id]) for job in jobs for planned in job.planned
    )


def in_order(jobs: Sequence[Job], workers: int, seconds: Mapping[str, float]) -> list[Job]:
    """The shortest first, one for each worker, for early results; then the longest first, so that
    no long one runs alone at the end."""
    by_time = sorted(jobs, key=lambda job: _time(job, seconds))
    return by_time[:workers] + sorted(by_time[workers:], key=lambda job: -_time(job, seconds))


def _time(job: Job, seconds: Mapping[str, float]) -> float:
    """Each row of a job has the time of the whole job."""
    known = [seconds[planned.case] for planned in job.planned if planned.case in seconds]
    if known:
        return max(known)
    return median(seconds.values()) if seconds else _UNKNOWN_S


class NoShard(UsageError):
    """``path`` holds no night."""

    kind = "no_shard"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds no night: no history.db and no *.db of `hil history copy`",
            hint="name the state directory of the shard (.hil), or a folder that it is in",
            path=folder,
        )


class NotOneNight(UsageError):
    """``nights``: ids of nights that do not belong together."""

    kind = "not_one_night"

    def __init__(self, nights: Sequence[str], property: str) -> None:
        self.nights = tuple(nights)
        super().__init__(
            f"{', '.join(nights)} are not shards of one night: they have another {property}",
            hint="give every shard the same suite and the same --night",
        )


@dataclass(frozen=True)
class Merged:
    """``missing``: shards that did not end; ``doubled``: cases that more than one had run, of which
    the first is kept."""

    night: Night
    rows: int
    missing: tuple[Shard, ...]
    doubled: tuple[str, ...]


def merge(folders: Sequence[Path], history: History) -> Merged:
    """The last night of each folder, as one. Its id is that of the first, where they have several.

    Raises NoShard, NotOneNight, and what the histories do.
    """
    parts = [_read_part(folder) for folder in folders]
    first = parts[0].night
    ids = list(dict.fromkeys(part.night.id for part in parts))
    for name, field in (("suite", "suite_sha256"), ("number of shards", "shards")):
        if len({getattr(part.night, field) for part in parts}) > 1:
            raise NotOneNight(ids, name)
    history.begin(first)
    first_with: dict[tuple[str, int], _Part] = {}
    doubled: list[str] = []
    new = 0
    for part in parts:
        for row in part.rows:
            if first_with.setdefault((row.case, row.attempt), part) is not part:
                doubled.append(row.case)
        kept = [row for row in part.rows if first_with[row.case, row.attempt] is part]
        new += history.append([replace(row, night=first.id) for row in kept])
        for shard, time in part.endings.items():
            history.end(first.id, shard, time)
    ended = {shard for part in parts for shard in part.endings}
    missing = [Shard(n, first.shards) for n in range(1, first.shards + 1) if n not in ended]
    return Merged(first, new, tuple(missing), tuple(dict.fromkeys(doubled)))


@dataclass(frozen=True)
class _Part:
    """The last night of a shard's own history. ``endings``: shards, and when they ended."""

    night: Night
    rows: list[Row]
    endings: dict[int, str]


def _read_part(folder: Path) -> _Part:
    from harness.nightly.history.database import open_history  # imports SQLAlchemy, an extra

    places = (folder, folder / "history.db", folder / ".hil" / "history.db", *folder.glob("*.db"))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise NoShard(folder)
    history = open_history(f"sqlite:///{file.absolute()}")
    try:
        for night in history.nights(most=1):
            return _Part(night, history.rows([night.id]), history.endings(night.id))
        raise NoShard(folder)
    finally:
        history.close()
