"""Folders of the cache, which are used only when they are complete and unchanged.

The one mechanism for exported programs, firmware and built tools. A folder is filled in its place;
``entry.json``, written last, has its key, the sha256 of every file and a seal over both. A writer
that is killed leaves a folder without it. The seal shows damage and what was moved or edited;
there is no secret in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError
from harness.system.cancellation import raise_if_cancelled
from harness.system.files import MALFORMED, read_json, sha256_of, text_of, write_whole
from harness.system.locks import in_use

ENTRY = "entry.json"
LOCK_SECONDS = 1800.0  # longer than any build may take
_LOOK_SECONDS = 0.2  # between looks whether this process was cancelled


def key_of(facts: object) -> str:
    """The name of an entry that these facts, plain data, decide."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


class NotAsStored(Exception):
    """``name``: the file of an entry that is not what the entry says."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} is not what was stored")


@dataclass(frozen=True)
class Entry:
    """``files``: relative name to sha256. ``facts``: what the owner of the entry adds, as JSON."""

    key: str
    files: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)

    def seal(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def check(place: Path) -> Entry | None:
    """The entry of a folder that has its files, unchanged, and no others; None without an entry.

    Raises NotAsStored.
    """
    try:
        fields = read_json(place / ENTRY)
        files = {str(name): str(digest) for name, digest in fields["files"].items()}
        entry = Entry(str(fields["key"]), files, dict(fields["facts"]))
        sealed = entry.seal() == fields["seal"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, *MALFORMED) as error:
        raise NotAsStored(ENTRY) from error
    if not sealed:
        raise NotAsStored(ENTRY)
    for name, digest in entry.files.items():
        if digest_of(place / name) != digest:
            raise NotAsStored(name)
    for name in files_below(place):
        if name not in entry.files:
            raise NotAsStored(name)
    return entry


def load(place: Path, key: str) -> Entry | None:
    """The entry of ``key`` in a folder, which is in use from now on. None where there is none,
    where it belongs to another key, and where a file is not what was stored."""
    in_use(place)
    try:
        entry = check(place)
    except NotAsStored:
        return None
    return entry if entry is not None and entry.key == key else None


def files_below(place: Path) -> list[str]:
    """The names of all files and links of a folder but its entry, sorted."""
    found = (path for path in place.rglob("*") if path.is_symlink() or path.is_file())
    paths = (path.relative_to(place) for path in found)
    return sorted(path.as_posix() for path in paths if path.as_posix() != ENTRY)


def seal(place: Path, key: str, facts: Mapping[str, Any] | None = None) -> Entry:
    """Declares the folder whole, with the files it has now. Raises OSError."""
    files = {name: _digest(place / name) for name in files_below(place)}
    entry = Entry(key, files, dict(facts or {}))
    text = json.dumps({**asdict(entry), "seal": entry.seal()}, indent=1, sort_keys=True)
    write_whole(place / ENTRY, text + "\n")
    return entry


def cached(
    place: Path,
    key: str,
    fill: Callable[[Path], Mapping[str, Any] | None],
    on_wait: Callable[[], None] = lambda: None,
) -> Entry:
    """The entry of ``key``; one process makes it by ``fill``, which is given the empty folder and
    returns the facts, while others wait. Raises what ``fill`` does, InfraError and OSError."""
    if (entry := load(place, key)) is not None:
        return entry
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place, on_wait=on_wait):
        if (entry := load(place, key)) is not None:
            return entry
        clear(place)
        place.mkdir()
        return seal(place, key, fill(place))


@contextmanager
def locked(
    place: Path, *, seconds: float = LOCK_SECONDS, on_wait: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Holds the right to write a folder. ``on_wait`` is called if another process has the lock.

    Raises InfraError after ``seconds``; OSError where no lock can be made.
    """
    import filelock  # a cache hit takes no lock

    lock = filelock.FileLock(place.with_name(f"{place.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        on_wait()
        until = time.monotonic() + seconds
        while not lock.is_locked:
            raise_if_cancelled()
            if time.monotonic() > until:
                message = f"another process has been building for {seconds:.0f} s"
                raise InfraError(message, path=lock.lock_file) from None
            with suppress(filelock.Timeout):
                lock.acquire(timeout=_LOOK_SECONDS)
    try:
        yield
    finally:
        lock.release()


def clear(place: Path) -> None:
    """Removes what a killed writer left. Renames it first: its compilers may still run and write to
    their current directory. Files written during the removal stay until the next call."""
    if place.exists():
        place.rename(place.with_name(f"{place.name}.{uuid.uuid4().hex[:8]}.trash"))
    for trash in place.parent.glob(f"{place.name}.*.trash"):
        shutil.rmtree(trash, ignore_errors=True)


def digest_of(path: Path) -> str | None:
    """The sha256 of a file, or of where a link leads; None when it cannot be read."""
    try:
        return _digest(path)
    except OSError:
        return None


def _digest(path: Path) -> str:
    """Digest of a file; of a link its target's path, as the file there is not the entry's."""
    if path.is_symlink():
        return hashlib.sha256(b"link to " + os.fsencode(path.readlink())).hexdigest()
    return sha256_of(path)


_TELLING = ("vendor_id", "flags", "CPU implementer", "Features")  # x86, and the Arm ones


def processor() -> Iterator[str]:
    """Lines that are equal on machines whose compilers and libraries choose the same instructions;
    a cache may be shared by several machines."""
    yield os.uname().machine
    lines = text_of(Path("/proc/cpuinfo")).splitlines()
    yield from sorted({line for line in lines if line.startswith(_TELLING)})
