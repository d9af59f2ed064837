"""Which shard runs which job, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.nightly.history.model import Planned, last_tries
from harness.nightly.suite import Job

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy

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
