"""What this process uses of ``.hil``, so that nobody prunes it meanwhile.

A process has one file below ``.hil/in_use``, with the paths that it uses, locked as long as it
lives: the kernel gives the lock back whatever happens (flock(2)). A gate is held, shared, while a
path is entered; whoever prunes holds it alone while it decides and takes away. So what was entered
is either gone already, and made again as if it had never been, or stays until the process ends.
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
    """``path``, an entry of the state directory, is used from now on, and was last used now. To be
    said before one looks whether it is there. What is elsewhere is nobody's to prune, and a state
    directory that cannot be written is not pruned either."""
    with suppress(OSError):
        place = real(path)
        if not any(place.is_relative_to(home) for home in (_register().parent, real(state_dir()))):
            return
        with _gate(fcntl.LOCK_SH):
            _enter(_register(), os.getpid(), place)
            os.utime(path, follow_symlinks=False)


@contextmanager
def alone() -> Iterator[frozenset[Path]]:
    """While the block runs nobody starts to use anything; the paths that somebody does use. Entries
    of processes that are gone are cleared. Raises OSError."""
    with _gate(fcntl.LOCK_EX):
        yield frozenset(path for entry in _register().iterdir() for path in _held(entry))


def real(path: Path) -> Path:
    """A path as it is entered: by where its folder really is, for homes may share one."""
    return path.parent.resolve() / path.name


@contextmanager
def _gate(how: int) -> Iterator[None]:
    register = _register()
    register.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        register.with_suffix(".gate"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666
    )
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _register() -> Path:
    """Beside the real cache."""
    return (state_dir() / "cache").resolve().parent / "in_use"


@lru_cache(maxsize=4096)
def _enter(register: Path, process: int, path: Path) -> None:
    """Once for each path. With the gate held."""
    os.write(_entry(register, process), os.fsencode(path) + b"\n")


@cache
def _entry(register: Path, process: int) -> int:
    """The process's own file, open and locked until its end."""
    name = register / f"{process}-{os.urandom(8).hex()}"
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _held(entry: Path) -> list[Path]:
    """The paths of a process that lives."""
    descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return [Path(os.fsdecode(line)) for line in entry.read_bytes().splitlines()]
    else:
        entry.unlink()
        return []
    finally:
        os.close(descriptor)
