"""Records which process uses which paths of ``.hil``.

A process that uses a path holds a read lock of one byte of a file, whose offset is made of the path
(fcntl(2), "Open file description locks"). The kernel releases it when the process ends, however it
ends. Whoever prunes a path takes the write lock first. A path that was entered is therefore either
gone already, and made again, or stays until the process ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

from harness.system.paths import state_dir


def in_use(path: Path) -> None:
    """Protects ``path``, an entry of the state directory, from pruning until this process ends, and
    notes that it was used now. Call it before looking whether the entry exists.

    Ignored: a path elsewhere, and a state directory that cannot be written, are never pruned.
    """
    with suppress(OSError):
        entry, register = real(path), _register()
        for home in {register.parent, real(state_dir())}.intersection(entry.parents):
            for place in (entry, *entry.parents):  # what is above it must not go, either
                if place == home:
                    break
                _enter(register, os.getpid(), place)
            os.utime(path, follow_symlinks=False)


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether nobody uses ``path`` or what is below it; then nobody starts to while the block runs.
    Raises OSError."""
    descriptor, free = _opened(_register()), True
    try:
        try:
            _lock(descriptor, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, real(path))
        except BlockingIOError:
            free = False
        yield free
    finally:
        os.close(descriptor)


def real(path: Path) -> Path:
    """The path with its folder resolved: several homes may share one cache by a link."""
    return path.parent.resolve() / path.name


def _register() -> Path:
    """The file of locks, next to the cache, which homes may share."""
    return (state_dir() / "cache").resolve().parent / "in_use.lock"


@lru_cache(maxsize=4096)
def _enter(register: Path, process: int, path: Path) -> None:
    """Once for each path; waits for whoever prunes it."""
    _lock(_of_process(register, process), fcntl.F_OFD_SETLKW, fcntl.F_RDLCK, path)


@cache
def _of_process(register: Path, process: int) -> int:
    """Open, and with its locks, until the process ends."""
    return _opened(register)


def _opened(register: Path) -> int:
    register.parent.mkdir(parents=True, exist_ok=True)
    return os.open(register, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)


def _lock(descriptor: int, command: int, kind: int, path: Path) -> None:
    offset = int.from_bytes(hashlib.sha256(os.fsencode(path)).digest()[:7], "big")
    fcntl.fcntl(descriptor, command, struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0))
