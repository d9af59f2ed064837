"""Which process uses what of ``.hil``.

A process has one file below ``.hil/in_use`` that lists the paths it uses. The file is locked
(flock(2)) as long as the process lives, however it ends. ``in_use.gate`` is locked, shared, while a
path is entered, and exclusively by whoever prunes. A path that was entered is therefore either gone
already, and made again, or stays until the process ends.
"""

from __future__ import annotations

import fcntl
import os
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
        entry = real(path)
        homes = (_register().parent, real(state_dir()))
        if any(entry.is_relative_to(home) for home in homes):
            with _gate(fcntl.LOCK_SH):
                _enter(_register(), os.getpid(), entry)
                os.utime(path, follow_symlinks=False)


@contextmanager
def alone() -> Iterator[frozenset[Path]]:
    """The paths in use; while the block runs nobody starts to use anything. Raises OSError."""
    with _gate(fcntl.LOCK_EX):
        yield frozenset(path for entry in _register().iterdir() for path in _live_paths(entry))


def real(path: Path) -> Path:
    """The path with its folder resolved: several homes may share one cache by a link."""
    return path.parent.resolve() / path.name


@contextmanager
def _gate(operation: int) -> Iterator[None]:
    register = _register()
    register.mkdir(parents=True, exist_ok=True)
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
    descriptor = os.open(register.with_suffix(".gate"), flags, 0o666)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


def _register() -> Path:
    """Beside the cache, which homes may share."""
    return (state_dir() / "cache").resolve().parent / "in_use"


@lru_cache(maxsize=4096)
def _enter(register: Path, process: int, path: Path) -> None:
    """Once for each path. The gate is locked."""
    os.write(_own_entry(register, process), os.fsencode(path) + b"\n")


@cache
def _own_entry(register: Path, process: int) -> int:
    """The process's own file, open and locked until its end."""
    name = register / f"{process}-{os.urandom(8).hex()}"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _live_paths(entry: Path) -> list[Path]:
    """The paths of a process that lives. The entry of a dead one is cleared away. The gate is
    locked exclusively: otherwise an entry could be new and not locked yet."""
    descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        paths = [Path(os.fsdecode(line)) for line in entry.read_bytes().splitlines()]
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return paths
    else:
        entry.unlink()
        return []
    finally:
        os.close(descriptor)
