"""That bubblewrap confines here, remembered: trying it out takes as long as starting a simulator.

It is remembered for one boot of the machine, the namespaces and rights of this process, and one
bubblewrap, walls and filter of ours; and only when nothing lacked. If it is true no longer all the
same, bubblewrap does not start the guest: that is no run (``one_process``), and it is forgotten.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from harness.system.files import write_whole
from harness.system.paths import cache_dir

_FILES = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/self/attr/current",
)
_RIGHTS = ("Uid:", "Gid:", "Cap", "NoNewPrivs:", "Seccomp")  # of /proc/self/status


def place(program: Path, arguments: str, filtered: bytes) -> Path:
    """The file that is there when it was tried out. Its name is of everything that it is for."""
    facts = [arguments, str(program), _stamp(program), filtered.hex(), *map(_text, _FILES)]
    status = _text("/proc/self/status").splitlines()
    facts += [line for line in status if line.startswith(_RIGHTS)]
    for name in sorted(os.listdir("/proc/self/ns")):
        with suppress(OSError):
            facts.append(os.readlink(f"/proc/self/ns/{name}"))
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()
    return cache_dir("tools") / f"confined-{digest[:32]}"


def remember(memory: Path) -> None:
    with suppress(OSError):  # a cache that cannot be written only costs time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_whole(memory, "")


def forget() -> None:
    """All of it, whoever it is for: the next run tries it out."""
    for memory in cache_dir("tools").glob("confined-*"):
        memory.unlink(missing_ok=True)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError as error:
        return f"{error.errno}"


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_mode}"
