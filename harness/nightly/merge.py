"""Shards that ran on machines of their own become one night of one history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import UsageError
from harness.history.database import open_history
from harness.history.lines import Ending, Item, bring, everything, read_lines
from harness.history.model import Night, Row
from harness.history.store import History
from harness.nightly.plan import Shard


class NoShard(UsageError):
    """``path``: where nothing of a night is."""

    kind = "no_shard"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds no night: no history.db and no *.jsonl of `hil history export`",
            hint="name the state directory of the shard (.hil), or a folder that it is in",
            path=folder,
        )


class NotOneNight(UsageError):
    """``nights``: the ids, which are not of one suite."""

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

    Raises NoShard, NotOneNight, BadLine, and what the two histories do.
    """
    parts = [_part(folder) for folder in folders]
    first = parts[0][0]
    ids = list(dict.fromkeys(night.id for night, _, _ in parts))
    for what, name in (("suite", "suite_sha256"), ("number of shards", "shards")):
        if len({getattr(night, name) for night, _, _ in parts}) > 1:
            raise NotOneNight(ids, what)
    history.begin(first)
    seen: dict[tuple[str, int], int] = {}
    doubled: list[str] = []
    new = 0
    ended: set[int] = set()
    for index, (_, rows, endings) in enumerate(parts):
        for row in rows:
            if seen.setdefault((row.case, row.attempt), index) != index:
                doubled.append(row.case)
        mine = [replace(row, night=first.id) for row in rows
                if seen[row.case, row.attempt] == index]  # fmt: skip
        ends = [replace(one, night=first.id) for one in endings]
        new += bring(history, [*mine, *ends]).rows
        ended |= {one.shard for one in ends}
    missing = [Shard(n, first.shards) for n in range(1, first.shards + 1) if n not in ended]
    return Merged(first, new, tuple(missing), tuple(dict.fromkeys(doubled)))


def _part(folder: Path) -> tuple[Night, list[Row], list[Ending]]:
    """The last night of a shard's own history, its rows and what ended of it."""
    items = list(_items(folder))
    nights = [item for item in items if isinstance(item, Night)]
    if not nights:
        raise NoShard(folder)
    last = max(nights, key=lambda night: (night.began, night.id))
    rows = [item for item in items if isinstance(item, Row) and item.night == last.id]
    return last, rows, [i for i in items if isinstance(i, Ending) and i.night == last.id]


def _items(folder: Path) -> list[Item]:
    for place in (folder, folder / ".hil"):
        if (place / "history.db").is_file():
            database = open_history(f"sqlite:///{place.absolute() / 'history.db'}")
            try:
                return list(everything(database))
            finally:
                database.close()
    files = [folder] if folder.suffix == ".jsonl" else sorted(folder.glob("*.jsonl"))
    found = [item for file in files if file.is_file() for item in read_lines(file)]
    if not found:
        raise NoShard(folder)
    return found
