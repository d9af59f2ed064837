"""Programs on disk by content key: complete or absent, whoever writes and whatever dies.

A new entry is written into a temporary directory beside its place and renamed when ``entry.json``
is in it, which has the sha256 of every file, what was read to make it, and a seal over all that.
An entry that is not what it says is not used. The exporter of a key holds a lock of that key.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import InfraError
from harness.export.inputs import NO_INPUTS, Inputs, inputs_from
from harness.export.program import Program, load_program
from harness.system.files import disk_hint, read_regular, sha256_of, write_whole
from harness.system.json_file import MALFORMED, read_json
from harness.system.lease import in_use
from harness.system.paths import cache_dir

ENTRY = "entry.json"
_SEPARATOR = "+"
_UNUSED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Entry:
    """What an entry of the cache is: whose, of which files (names and sha256), and what was read
    to make it."""

    key: str
    files: dict[str, str]
    inputs: Inputs

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)

    def seal(self) -> str:
        """Over all of it. It shows damage and what was moved; there is no secret in it."""
        text = json.dumps(self.to_fields(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def entry_from(fields: Mapping[str, Any]) -> Entry:
    """From JSON. Raises one of MALFORMED."""
    files = {str(name): str(digest) for name, digest in fields["files"].items()}
    return Entry(str(fields["key"]), files, inputs_from(fields["inputs"]))


class NotAsStored(Exception):
    """``name``: the file of an entry that is not what the entry says."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} is not what was stored")


_FULL = (errno.ENOSPC, errno.EDQUOT)


class CacheNotWritable(InfraError):
    """``free_bytes``: on the disk of the cache, where that was the matter and can be told."""

    def __init__(self, place: Path, error: OSError) -> None:
        self.errno = error.errno
        self.free_bytes = _free_bytes(place) if error.errno in _FULL else None
        free = f" ({self.free_bytes} bytes free)" if self.free_bytes is not None else ""
        super().__init__(
            f"cannot write the program cache at {place}: {error.strerror or error}{free}",
            hint=disk_hint(error) or "point HIL_HOME at a directory that can be written",
            path=place,
        )


def entry_dir(key: str, inputs: Inputs = NO_INPUTS) -> Path:
    """One that read nothing besides its sources has the key for its name; the others, of which a
    key may have several, have that of what was read behind it."""
    name = key
    if inputs:
        name += f"{_SEPARATOR}{inputs.name()}"
    if inputs.unknown:
        name += f"-{uuid.uuid4().hex[:8]}"
    return cache_dir("programs") / name


def load(key: str, home: str = "") -> Program | None:
    """The cached Program; None when there is none that is whole, is what was stored under this
    key, and whose inputs are what they were. ``home``: the folder of the model's file."""
    for place in _entries(key):
        in_use(place)
        with suppress(NotAsStored):
            entry = _read(place)
            if entry is not None and entry.key == key and entry.inputs.hold(home):
                return at(place)
    return None


def at(place: Path) -> Program | None:
    """The Program of one entry, whatever became of its inputs; None when it is not whole.

    Raises NotAsStored.
    """
    if _read(place) is None:
        return None
    try:
        return load_program(place)
    except (OSError, *MALFORMED):
        return None


def spoiled(key: str) -> str:
    """Why entries of a key cannot be used although they are there; "" when none is so."""
    for place in _entries(key):
        try:
            entry = _read(place)
        except NotAsStored as error:
            return str(error)
        if entry is not None and entry.key != key:
            return f"it is that of {entry.key}"
    return ""


def _entries(key: str) -> Iterator[Path]:
    place = entry_dir(key)
    if place.is_dir():
        yield place
    with suppress(FileNotFoundError, NotADirectoryError):
        found = (e for e in os.scandir(place.parent) if e.name.startswith(f"{key}{_SEPARATOR}"))
        yield from (Path(e.path) for e in sorted(found, key=lambda e: e.name))


def _read(place: Path) -> Entry | None:
    """Every byte is looked at: a PASS rests on them. None without a description.

    Raises NotAsStored.
    """
    try:
        fields = read_json(place / ENTRY)
        entry = entry_from(fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, *MALFORMED) as error:
        raise NotAsStored(ENTRY) from error
    if entry.seal() != fields.get("seal"):
        raise NotAsStored(ENTRY)
    for name, digest in entry.files.items():
        if _digest(place / name) != digest:
            raise NotAsStored(name)
    return entry


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except OSError:
        return None


def by_pte(sha256: str) -> Program | None:
    """The cached Program that this ``.pte`` belongs to."""
    entries = (load(file.parent.name) for file in cache_dir("programs").glob("[!.]*/program.json"))
    return next((p for p in entries if p is not None and p.pte_sha256 == sha256), None)


@contextmanager
def locked(key: str, *, wait: bool) -> Iterator[bool]:
    """Hold the right to write a key; yields False when ``wait`` is off and another has it."""
    import filelock  # whoever finds a program needs none

    place = entry_dir(key)
    lock = filelock.FileLock(place.parent / f".{key}.lock")
    with _explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(filelock.Timeout):
            lock.acquire(timeout=-1 if wait else 0)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def store(key: str, write: Callable[[Path], Program], inputs: Inputs = NO_INPUTS) -> Program:
    """Put one entry; ``write`` fills the directory it is given and describes it.

    Call with the key's lock held. Raises CacheNotWritable, leaving nothing, when the disk is full.
    """
    place = entry_dir(key, inputs)
    in_use(place)
    with _explained(place):
        for stale in _left_over(key, place.parent):
            shutil.rmtree(stale)
        temporary = place.parent / f".{key}.tmp-{os.getpid()}"
        temporary.mkdir()
        try:
            program = write(temporary)
            program.save()
            _describe(temporary, key, inputs)
            if place.exists():
                shutil.rmtree(place)
            temporary.rename(place)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return replace(program, directory=place)


def _left_over(key: str, programs: Path) -> list[Path]:
    """What a killed export left, and programs that are exported every time, when nobody can be
    using them any more."""
    known_once = [
        place
        for place in programs.glob(f"{glob.escape(key)}{_SEPARATOR}*-*")
        if time.time() - place.stat().st_mtime > _UNUSED_SECONDS
    ]
    return [*programs.glob(f".{glob.escape(key)}.tmp-*"), *known_once]


def _describe(directory: Path, key: str, inputs: Inputs) -> None:
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ENTRY)
    files = {path.relative_to(directory).as_posix(): sha256_of(path) for path in found}
    entry = Entry(key, files, inputs)
    text = json.dumps({**entry.to_fields(), "seal": entry.seal()}, indent=1, sort_keys=True)
    write_whole(directory / ENTRY, text + "\n")


def has(directory: Path, name: str) -> bool:
    """Whether a derived file is part of an entry, as it was put there."""
    try:
        entry = _read(directory)
    except NotAsStored:
        return False
    return entry is not None and name in entry.files


def add(directory: Path, name: str, content: bytes) -> None:
    """Put a derived file into a complete entry; call with the key's lock held."""
    with _explained(directory):
        write_whole(directory / name, content)
        entry = entry_from(read_json(directory / ENTRY))
        _describe(directory, entry.key, entry.inputs)


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    """Turn an OSError of the cache into one that says where and how much is free."""
    try:
        yield
    except OSError as error:
        raise CacheNotWritable(place, error) from error


def _free_bytes(place: Path) -> int | None:
    for parent in place.parents:
        if parent.is_dir():
            return shutil.disk_usage(parent).free
    return None
