"""CPU time and readiness of a process and everything below it, from /proc (proc(5))."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# Positions in /proc/PID/stat counted after the parenthesised name, whose end is the last ")".
_STATE = 0
_PARENT = 1
_TIMES = slice(11, 15)  # utime, stime, and both of the children that were waited for
_READY = (b"R", b"D")  # running or waiting for a CPU; waiting for a disk


def tree_cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Seconds used so far by ``pid`` and its living and its reaped descendants."""
    ticks = sum(int(field) for fields in _tree(pid, proc) for field in fields[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def tree_is_ready(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether one of them would go on if only it got a CPU, or its disk answered."""
    return any(fields[_STATE] in _READY for fields in _tree(pid, proc))


def _tree(pid: int, proc: Path) -> Iterator[list[bytes]]:
    """The fields of ``pid`` and of every living descendant."""
    found: dict[int, list[bytes]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):  # it ended while we looked
            stat = (proc / name / "stat").read_bytes()
            fields = stat[stat.rindex(b")") + 2 :].split()
            children[int(fields[_PARENT])].append(int(name))
            found[int(name)] = fields
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        if one in found:
            yield found[one]
        waiting.extend(children[one])
