"""That bubblewrap confines here, remembered: trying it out takes as long as starting a simulator.

It is remembered for one boot of the machine, the namespaces and rights of this process, and one
bubblewrap, walls and filter of ours; and only when nothing lacked. If it is true no longer all the
same, bubblewrap does not start the guest: that is no run (``one_process``), and it is forgotten.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.system import remembered

_KIND = "confined"
_FILES = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/self/attr/current",
)
_RIGHTS = ("Uid:", "Gid:", "Cap", "NoNewPrivs:", "Seccomp")  # of /proc/self/status


def facts(program: Path, arguments: str, filtered: bytes) -> str | None:
    """Everything that the answer is for; None where it cannot be told."""
    try:
        stamp = remembered.stamps([str(program)])
        spaces = [os.readlink(f"/proc/self/ns/{n}") for n in sorted(os.listdir("/proc/self/ns"))]
    except OSError:
        return None
    if stamp is None:
        return None
    status = _text("/proc/self/status").splitlines()
    rights = [line for line in status if line.startswith(_RIGHTS)]
    return "\0".join([arguments, stamp, filtered.hex(), *spaces, *rights, *map(_text, _FILES)])


def known(facts: str) -> bool:
    return remembered.answer(_KIND, facts) is not None


def remember(facts: str) -> None:
    remembered.remember(_KIND, facts, "it confines")


def forget() -> None:
    """All of it, whoever it is for: the next run tries it out."""
    remembered.forget(_KIND)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError as error:
        return f"{error.errno}"
