"""Who runs what, and in which order: shards of equal length, and a first result at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.history.model import Planned, last_tries
from harness.nightly.suite import Job

if TYPE_CHECKING:
    from harness.history.store import History  # SQLAlchemy

_NIGHTS = 5  # of which the times are taken
_UNKNOWN = 10.0  # seconds that a case is taken for where nothing at all is known


class BadShard(UsageError):
    """``said``: what is not i/n."""

    def __init__(self, said: str) -> None:
        self.said = said
        super().__init__(
            f"{said!r} is no shard", hint="1/4 is the first of four; up to 1000 are possible"
        )


@dataclass(frozen=True)
class Shard:
    """``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = Shard()


def parse_shard(said: str) -> Shard:
    """Raises BadShard."""
    number, _, count = said.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 1000):
        raise BadShard(said)
    return Shard(int(number), int(count))


def usual_seconds(history: History) -> dict[str, float]:
    """How long each case took in the last nights that ended: the median."""
    ended = [night for night in history.nights(most=2 * _NIGHTS) if history.ended(night)]
    found: dict[str, list[float]] = {}
    for night in ended[:_NIGHTS]:
        for name, row in last_tries(history.rows([night.id])).items():
            if "total" in row.seconds:
                found.setdefault(name, []).append(row.seconds["total"])
    return {name: median(times) for name, times in found.items()}


def shared_out(
    jobs: Sequence[Job], shards: int, seconds: Mapping[str, float]
) -> tuple[Planned, ...]:
    """The plan with a shard for each job: the longest first, each to whom has least to do (Graham's
    rule: the longest shard is at most 4/3 of the best possible)."""
    load = [0.0] * shards
    of_job: dict[str, int] = {}
    for job in sorted(jobs, key=lambda job: (-_time(job, seconds), job.case.id)):
        least = min(range(shards), key=lambda shard: load[shard])
        load[least] += _time(job, seconds)
        of_job[job.case.id] = least + 1
    return tuple(replace(one, shard=of_job[job.case.id]) for job in jobs for one in job.planned)


def in_order(jobs: Sequence[Job], workers: int, seconds: Mapping[str, float]) -> list[Job]:
    """The shortest ones first, one for each worker, so that something is known at once; then the
    longest, so that none is left alone at the end."""
    by_time = sorted(jobs, key=lambda job: _time(job, seconds))
    return by_time[:workers] + sorted(by_time[workers:], key=lambda job: -_time(job, seconds))


def _time(job: Job, seconds: Mapping[str, float]) -> float:
    """Two rows of one job have each the time of both."""
    known = [seconds[one.case] for one in job.planned if one.case in seconds]
    if known:
        return max(known)
    return median(seconds.values()) if seconds else _UNKNOWN
