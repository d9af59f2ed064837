"""How much a program may write into its directory, and whether it has written more.

No file grows beyond its limit: the kernel sees to that (RLIMIT_FSIZE, SIGXFSZ). The sum and the
number are looked at while the program runs and once when it has ended, so a fast writer gets a
little further than the limit before it is stopped. A file that was removed takes its place on the
disk until nobody has it open or mapped, so the program's processes are looked at for such files.

A tmpfs of a bounded size inside the sandbox (``bwrap --size N --tmpfs``) does not replace this: it
bounds bytes and no number of files (20,000 empty ones fit into 10 MB, bubblewrap 0.8.0, Linux 6),
it goes with the sandbox before anything can be read, and without bubblewrap there is none.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.core.verdict import Word
from harness.system.call import ENGLISH

_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID
_DEEPEST = 64  # folders in each other: no runner makes more, and their path has an end
_BLOCK = 512  # bytes; st_blocks counts them (inode(7))
# No files of a disk: of memfd_create(2), of shared memory without a name, of shmget(2).
_IN_MEMORY = ("/memfd:", "/dev/zero", "/SYSV")


class Excess(Word):
    """The limit that a program exceeded."""

    CONSOLE = "console"
    LINE = "line"
    FILE_BYTES = "file_bytes"
    TOTAL_BYTES = "total_bytes"
    FILES = "files"
    UNCOUNTED = "uncounted"  # where nobody can look


@dataclass(frozen=True)
class Quota:
    """The most that a program may add to its directory. A file counts by the disk space it takes,
    or by its size if it has holes."""

    file_bytes: int = 128 << 20
    total_bytes: int = 256 << 20
    files: int = 4096


QUOTA = Quota()


@dataclass(frozen=True)
class Usage:
    files: int = 0
    bytes: int = 0
    largest: int = 0
    whole: bool = True  # every folder could be looked into


class Account:
    """One directory, from what is in it when this is made. Raises OSError then."""

    def __init__(self, folder: Path, quota: Quota = QUOTA) -> None:
        self._folder = folder
        self._quota = quota
        self._before = usage(folder)

    def excess(self, processes: Iterable[int] = ()) -> Excess | None:
        """The limit that is exceeded now. ``processes``: those that write."""
        quota, before = self._quota, self._before
        removed = [size for pid in processes for size in _removed(pid, quota.file_bytes)]
        most = Usage(
            before.files + quota.files - len(removed),
            before.bytes + quota.total_bytes - sum(removed),
        )
        now = usage(self._folder, most)
        if not now.whole:
            return Excess.UNCOUNTED
        if now.largest >= max(quota.file_bytes, before.largest + 1):
            return Excess.FILE_BYTES
        if now.files > most.files:
            return Excess.FILES
        return Excess.TOTAL_BYTES if now.bytes > most.bytes else None


def usage(folder: Path, most: Usage | None = None) -> Usage:
    """All that is below ``folder``; when that is more than ``most``, or something cannot be looked
    into, not to the end."""
    files = total = largest = 0
    waiting = [(str(folder), 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            entries = os.scandir(place)
        except FileNotFoundError:  # it went meanwhile
            continue
        except OSError:  # no permission, or too long a path
            return Usage(files, total, largest, whole=False)
        with entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError:
                    return Usage(files, total, largest, whole=False)
                size = max(found.st_size, _BLOCK * found.st_blocks)
                files += 1
                if stat.S_ISDIR(found.st_mode):
                    if depth == _DEEPEST:
                        return Usage(files, total, largest, whole=False)
                    waiting.append((entry.path, depth + 1))
                elif stat.S_ISREG(found.st_mode):
                    total += size
                    largest = max(largest, found.st_size)
                if most is not None and (files > most.files or total > most.bytes):
                    return Usage(files, total, largest)
    return Usage(files, total, largest)


def _removed(pid: int, unknown: int) -> list[int]:
    """The bytes on the disk of each removed file that a process has open or mapped. The size of one
    that is only mapped is not known, so it counts as ``unknown``."""
    found: dict[int, int] = {}  # by inode
    with suppress(OSError):  # the process went, or it is not ours
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                link = f"/proc/{pid}/fd/{name}"
                status = os.stat(link)
                gone = stat.S_ISREG(status.st_mode) and status.st_nlink == 0
                if gone and not os.readlink(link).startswith(_IN_MEMORY):
                    found[status.st_ino] = _BLOCK * status.st_blocks
        with open(f"/proc/{pid}/maps", "rb") as maps:
            for line in maps:
                if line.endswith(b" (deleted)\n"):
                    *_, inode, path = line.split(maxsplit=5)  # proc(5)
                    if not path.decode("utf-8", "replace").startswith(_IN_MEMORY):
                        found.setdefault(int(inode), unknown)
    return list(found.values())


def mend_modes(folder: Path) -> None:
    """No file of what a guest left gives its owner's rights to who starts it, and every folder can
    be entered and emptied by its owner."""
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        with suppress(OSError):
            os.chmod(place, stat.S_IMODE(os.lstat(place).st_mode) & ~_SPECIAL_BITS | 0o700)
            for entry in os.scandir(place):
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    waiting.append(entry.path)
                elif mode & _SPECIAL_BITS and not stat.S_ISLNK(mode):
                    os.chmod(entry.path, stat.S_IMODE(mode) & ~_SPECIAL_BITS)


def remove(path: Path) -> str:
    """Deletes a file, or a folder with whatever is in it: deeper than a path reaches, or without
    permissions. Returns the message of rm(1) about files that stay."""
    said = ""
    with suppress(OSError):  # a folder; of files there may be thousands
        path.unlink()
        return said
    for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        said = subprocess.run(
            [*command, "--", path],
            env={**os.environ, **ENGLISH},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        ).stderr
    return said
