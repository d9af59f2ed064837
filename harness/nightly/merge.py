"""Makes one night of one history from shards that ran on machines of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.core.errors import UsageError
from harness.nightly.history.database import open_history
from harness.nightly.history.model import Night, Row
from harness.nightly.history.store import History
from harness.nightly.plan import Shard


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

    def __init__(self, nights: Sequence[str], what: str) -> None:
        self.nights = tuple(nights)
        super().__init__(
            f"{', '.join(nights)} are not shards of one night: they have another {what}",
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
    parts = [_part(folder) for folder in folders]
    first = parts[0].night
    ids = list(dict.fromkeys(part.night.id for part in parts))
    for what, name in (("suite", "suite_sha256"), ("number of shards", "shards")):
        if len({getattr(part.night, name) for part in parts}) > 1:
            raise NotOneNight(ids, what)
    history.begin(first)
    seen: dict[tuple[str, int], int] = {}
    doubled: list[str] = []
    new = 0
    ended: set[int] = set()
    for index, part in enumerate(parts):
        for row in part.rows:
            if seen.setdefault((row.case, row.attempt), index) != index:
                doubled.append(row.case)
        mine = [row for row in part.rows if seen[row.case, row.attempt] == index]
        new += history.append([replace(row, night=first.id) for row in mine])
        for shard, time in part.endings.items():
            history.end(first.id, shard, time)
            ended.add(shard)
    missing = [Shard(n, first.shards) for n in range(1, first.shards + 1) if n not in ended]
    return Merged(first, new, tuple(missing), tuple(dict.fromkeys(doubled)))


@dataclass(frozen=True)
class _Part:
    """The last night of a shard's own history. ``endings``: shards, and when they ended."""

    night: Night
    rows: list[Row]
    endings: dict[int, str]


def _part(folder: Path) -> _Part:
    places = (folder, folder / "history.db", folder / ".hil" / "history.db", *folder.glob("*.db"))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise NoShard(folder)
    history = open_history(f"sqlite:///{file.absolute()}")
    try:
        for night in history.nights(most=1):
            rows = [history.checked(row) for row in history.rows([night.id])]
            return _Part(history.checked(night), rows, history.endings(night.id))
        raise NoShard(folder)
    finally:
        history.close()
