"""Directories in use, so that whoever comes next clears up after somebody who was killed.

A file below ``.hil/at_work`` names a directory, and is locked as long as its user lives: the
kernel gives a lock back whatever happens (flock(2)). The FIFOs and sockets of a guest have names
in its directory, and SIGKILL leaves nobody to remove them but the next run.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.system.paths import state_dir


@contextmanager
def at_work(directory: Path) -> Iterator[None]:
    """``directory`` is in use while the block runs. First what the dead left is cleared: the FIFOs
    and sockets in their directories, and nothing else. Raises OSError."""
    register = state_dir() / "at_work"
    register.mkdir(parents=True, exist_ok=True)
    for entry in register.iterdir():
        _clear_if_abandoned(entry)
    entry, descriptor = _entered(register, directory)
    try:
        yield
    finally:
        entry.unlink(missing_ok=True)
        os.close(descriptor)


def _entered(register: Path, directory: Path) -> tuple[Path, int]:
    """A locked entry. Between its making and its locking another may take it for abandoned."""
    while True:
        entry = register / os.urandom(16).hex()
        descriptor = os.open(entry, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if entry.exists():
            os.write(descriptor, os.fsencode(directory.absolute()))
            return entry, descriptor
        os.close(descriptor)


def _clear_if_abandoned(entry: Path) -> None:
    with suppress(OSError):  # another run clears it, or it is somebody else's: nothing is lost
        descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = os.fsdecode(os.pread(descriptor, 4096, 0))
            if named:
                _clear(Path(named))
            entry.unlink()
        finally:
            os.close(descriptor)


def _clear(directory: Path) -> None:
    for path in directory.iterdir() if directory.is_dir() else ():
        mode = path.lstat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            path.unlink(missing_ok=True)
