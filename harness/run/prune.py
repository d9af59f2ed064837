"""Keeps ``.hil`` small: deletes old runs and cache entries that nobody uses.

A run is evidence and goes by age. Cache entries can be made again: the least recently used go
first, until the rest is within the bound. Everything else is counted and left alone.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from harness.core.errors import HarnessError
from harness.system.files import disk_errors
from harness.system.locks import claimed, real
from harness.system.paths import state_dir
from harness.system.quota import remove
from harness.system.settings import settings

# Folders of the cache whose entries can be made again, one by one, by whoever wants them.
_CACHES = (
    "programs",
    "firmware",
    "executorch",
    "executorch-python",
    "executorch-ci",
    "zephyr",
    "size",
    "guest/images",
    "suite-exports",
)
_RUNS = ("runs", "suites")
_TRASH, _DONE = "trash", "pruned"
_EVERY_SECONDS = 3600  # so often is looked whether there is too much


@dataclass(frozen=True)
class CacheBounds:
    """``cache``: bytes of entries that can be made again. ``runs``: seconds that a run is kept."""

    cache: int
    runs: float


@dataclass(frozen=True)
class PrunableEntry:
    """``used``: when last, in seconds since the epoch."""

    kind: str
    path: Path
    bytes: int
    used: float

    @property
    def is_run(self) -> bool:
        return self.kind in _RUNS


@dataclass(frozen=True)
class Pruned:
    """The entries that went, or would have gone.

    ``kept``: what had to, but somebody uses it. ``left``: bytes of the cache that are left.
    ``undeleted``: the paths that could not be deleted, with why."""

    gone: tuple[PrunableEntry, ...]
    kept: tuple[PrunableEntry, ...]
    left: int
    undeleted: tuple[tuple[Path, str], ...] = ()

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.gone)


def bounds() -> CacheBounds:
    """As ``cache_max`` and ``runs_keep`` of the user's settings have it. Raises SettingsError."""
    said = settings()
    return CacheBounds(said.cache_max, said.runs_keep)


def prune(within: CacheBounds, *, dry_run: bool = False) -> Pruned:
    """Bring ``.hil`` within bounds. Raises DiskError."""
    with disk_errors("pruning"):
        found = list(_entries())
        victims = list(_too_much(found, within))
        if dry_run:
            return Pruned(tuple(victims), (), _cached(found) - _cached(victims))
        trash = state_dir() / _TRASH
        trash.mkdir(parents=True, exist_ok=True)
        gone = [entry for entry in victims if _moved_to_trash(entry, trash)]
        left = [(path, remove(path)) for path in trash.iterdir()]  # a killed process's, too
    kept = tuple(entry for entry in victims if entry not in gone)
    undeleted = tuple((path, said.splitlines()[0]) for path, said in left if said)
    return Pruned(tuple(gone), kept, _cached(found) - _cached(gone), undeleted)


def prune_when_due() -> None:
    """Prune at most once in an hour. Ignores errors, which ``hil prune`` reports."""
    done = state_dir() / _DONE
    with suppress(OSError, HarnessError):
        if done.exists() and time.time() - done.stat().st_mtime < _EVERY_SECONDS:
            return
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()
        prune(bounds())


def _entries() -> Iterator[PrunableEntry]:
    for kind in (*_RUNS, *_CACHES):
        folder = state_dir() / kind if kind in _RUNS else state_dir() / "cache" / kind
        if folder.resolve() != state_dir().resolve() / folder.relative_to(state_dir()):
            continue  # a link leads to it: its owner prunes it
        for path in _children(folder):
            with suppress(OSError):
                used = path.lstat().st_mtime
                if path.is_dir() and not path.is_symlink():  # a tree, in which somebody builds
                    used = max([used, *(child.lstat().st_mtime for child in path.iterdir())])
                yield PrunableEntry(kind, path, size_on_disk(path), used)


def _children(folder: Path) -> Iterator[Path]:
    """Neither locks nor what is not finished yet."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            if not entry.name.startswith(".") and not entry.name.endswith((".lock", ".trash")):
                yield Path(entry.path)


def size_on_disk(path: Path) -> int:
    """Bytes that it takes on the disk; links are not followed."""
    total, waiting = 0, [path]
    while waiting:
        with suppress(OSError):
            status = (place := waiting.pop()).lstat()
            total += status.st_blocks * 512  # stat(2): the unit whatever the disk's
            if S_ISDIR(status.st_mode):
                waiting += place.iterdir()
    return total


def _too_much(found: Iterable[PrunableEntry], within: CacheBounds) -> Iterator[PrunableEntry]:
    """Yield the oldest first."""
    now = time.time()
    ordered = sorted(found, key=lambda entry: entry.used)
    yield from (e for e in ordered if e.is_run and now - e.used >= within.runs)
    over = _cached(ordered) - within.cache
    for entry in ordered:
        if over <= 0:
            return
        if not entry.is_run:
            over -= entry.bytes
            yield entry


def _cached(entries: Iterable[PrunableEntry]) -> int:
    return sum(entry.bytes for entry in entries if not entry.is_run)


def _moved_to_trash(entry: PrunableEntry, trash: Path) -> bool:
    """Move an entry that is not in use, not being built, and was not used since it was listed."""
    import filelock  # one run in an hour prunes

    path = real(entry.path)
    # of its builder or exporter, where it had one
    lock = path.with_name(f"{path.name.partition('+')[0]}.lock")
    builder = filelock.FileLock(lock, timeout=0) if lock.exists() else nullcontext()
    with suppress(OSError, filelock.Timeout), claimed(path) as free, builder:
        if not free or path.lstat().st_mtime > entry.used:
            return False
        path.rename(trash / uuid.uuid4().hex)
        return True
    return False
