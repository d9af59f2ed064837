"""Programs on disk by content key: complete or absent, whoever writes and whatever dies.

A new entry is written into a temporary directory beside its place and renamed when
``program.json`` is in it. The exporter of a key holds a lock of that key meanwhile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import filelock

from harness.errors import InfraError
from harness.export.program import Program, load_program
from harness.system.files import write_whole
from harness.system.paths import cache_dir


class CacheNotWritable(InfraError):
    """``free_bytes``: on the disk of the cache, when that can be told."""

    def __init__(self, place: Path, error: OSError) -> None:
        self.errno = error.errno
        self.free_bytes = _free_bytes(place)
        free = f" ({self.free_bytes} bytes free)" if self.free_bytes is not None else ""
        super().__init__(
            f"cannot write the program cache at {place}: {error.strerror or error}{free}",
            hint="free some space, or point HIL_HOME at a directory that can be written",
            path=place,
        )


def entry_dir(key: str) -> Path:
    return cache_dir("programs") / key


def load(key: str) -> Program | None:
    """The cached Program; None when it is absent, incomplete or badly described.

    Whether the ``.pte`` still is the exported one is judged when it runs: a changed file must
    show in the verdict, not disappear behind a silent new export.
    """
    try:
        program = load_program(entry_dir(key))
    except (ValueError, TypeError, KeyError):  # a damaged description: export again
        return None
    if program is None:
        return None
    sets = [*program.sets, *(s for d in program.delegates for s in d.sets)]
    names = [
        program.pte,
        *(n for d in program.delegates for n in (d.blob, d.tosa)),
        *(n for s in sets for n in (*s.inputs, *s.expected, *s.by_design)),
    ]
    return program if all((program.directory / n).is_file() for n in names) else None


def by_pte(sha256: str) -> Program | None:
    """The cached Program that this ``.pte`` belongs to."""
    entries = (load(file.parent.name) for file in cache_dir("programs").glob("[!.]*/program.json"))
    return next((p for p in entries if p is not None and p.pte_sha256 == sha256), None)


@contextmanager
def locked(key: str, *, wait: bool) -> Iterator[bool]:
    """Hold the right to write a key; yields False when ``wait`` is off and another has it."""
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


def store(key: str, write: Callable[[Path], Program]) -> Program:
    """Put one entry; ``write`` fills the directory it is given and describes it.

    Call with the key's lock held. Raises CacheNotWritable, leaving nothing, when the disk is full.
    """
    place = entry_dir(key)
    with _explained(place):
        for stale in place.parent.glob(f".{key}.tmp-*"):
            shutil.rmtree(stale)
        temporary = place.parent / f".{key}.tmp-{os.getpid()}"
        temporary.mkdir()
        try:
            program = write(temporary)
            program.save()
            if place.exists():
                shutil.rmtree(place)
            temporary.rename(place)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return replace(program, directory=place)


def add(path: Path, content: bytes) -> None:
    """Put a derived file into a complete entry; call with the key's lock held."""
    with _explained(path):
        write_whole(path, content)


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
