"""Shards of a night: which one runs which job, and how they become one night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.nightly.history.model import Night, Planned
from harness.nightly.suite import Job

if TYPE_CHECKING:
    from harness.nightly.history.store import History  # imports SQLAlchemy, an extra

_NIGHTS = 5  # whose times are known
_UNKNOWN_S = 10.0  # of a case that never ran


@dataclass(frozen=True)
class Shard:
    """``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Raises UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 1000):
        raise UsageError(
            f"{text!r} is no shard", hint="1/4 is the first of four; up to 1000 are possible"
        )
    return Shard(int(number), int(count))


def usual_seconds(history: History) -> dict[str, float]:
    """How long each case took when it last ran to an end, in the last nights."""
    nights = [night.id for night in history.nights(most=_NIGHTS)]
    known = (row for row in history.rows(nights) if row.good or row.bad)
    return {row.case: row.seconds["total"] for row in known if "total" in row.seconds}


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
    return seconds.get(job.planned[0].case, _UNKNOWN_S)


def merge(folders: Sequence[Path], history: History) -> tuple[Night, list[Shard], list[str]]:
    """Adds the last night of each folder to ``history``. Returns the night, its shards that did not
    end, and the cases that more than one has run: the first is kept. Raises UsageError for what is
    no night and for nights that are not shards of one, and what the histories do."""
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
    unfinished = sorted({planned.shard for planned in history.left(nights[0])})
    return nights[0], [Shard(number, nights[0].shards) for number in unfinished], doubled


def _history_in(folder: Path) -> History:
    from harness.nightly.history.database import open_history  # imports SQLAlchemy, an extra

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
