"""CPU time of a process and everything below it, from /proc (proc(5))."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

# Positions in /proc/PID/stat counted after the parenthesised name, whose end is the last ")".
_PARENT = 1
_TIMES = slice(11, 15)  # utime, stime, and both of the children that were waited for


def tree_cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float:
    """Seconds used so far by ``pid`` and its living and its reaped descendants."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError):  # it ended while we looked
            stat = (proc / name / "stat").read_bytes()
            fields = stat[stat.rindex(b")") + 2 :].split()
            ticks[int(name)] = sum(int(field) for field in fields[_TIMES])
            children[int(fields[_PARENT])].append(int(name))
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        total += ticks.get(one, 0)
        waiting.extend(children[one])
    return total / os.sysconf("SC_CLK_TCK")
