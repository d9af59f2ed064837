"""How long work reports its progress: a function that takes one short sentence.

Work with phases reports "SUBJECT: PHASE", optionally with a count such as 3/45. A phase lasts until
the next sentence of its subject.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.system.files import MALFORMED, read_json, write_whole
from harness.system.paths import state_dir

Progress = Callable[[str], None]
COUNT = re.compile(r"\s*\b(\d+)/(\d+)")
_FILE = "phase_times.json"
_MOST = 1000  # phases that the file keeps, the newest


def silent(_message: str) -> None:
    """A Progress that says nothing."""


@contextmanager
def timed(say: Progress, clock: Callable[[], float] = time.monotonic) -> Iterator[Progress]:
    """A Progress that adds how long a phase took the last time, and keeps how long each takes now
    in a file of the state directory. Waiting for other processes is not timed. Thread-safe."""
    file = state_dir() / _FILE
    before, took = _seconds_by_phase(file), dict[str, float]()
    running: dict[str, tuple[str, float]] = {}  # by subject: its phase, and since when

    def say_timed(message: str) -> None:
        phase = COUNT.sub("", message)
        subject, _, doing = phase.partition(": ")
        last, since = running.get(subject, ("", 0.0))
        if phase != last:
            now = clock()
            if last:
                took[last] = round(now - since, 1)
            running[subject] = ("" if doing.startswith("waiting") else phase, now)
        seconds = before.get(phase, 0.0)
        say(f"{message} ({seconds:.0f} s last time)" if seconds >= 1 else message)

    try:
        yield say_timed
    finally:
        # Read again: another command may have written meanwhile.
        kept = {k: v for k, v in _seconds_by_phase(file).items() if k not in took} | took
        newest = dict([*kept.items()][-_MOST:])
        with suppress(OSError):
            if took:
                write_whole(file, json.dumps(newest, indent=1) + "\n")


def _seconds_by_phase(file: Path) -> dict[str, float]:
    """Seconds of each phase; {} if the file is missing or damaged."""
    try:
        return {str(phase): float(seconds) for phase, seconds in read_json(file).items()}
    except (OSError, *MALFORMED):
        return {}
