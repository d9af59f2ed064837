"""What is going on right now, on stderr: a status line at a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.core.plain import plain
from harness.system.progress import Progress, silent

if TYPE_CHECKING:
    from rich.text import Text

_COUNT = re.compile(r"\s*\b(\d+)/(\d+)")
_WORTH_SAYING = 2.0  # seconds


@contextmanager
def progress_shown(as_json: bool) -> Iterator[Progress]:
    """A Progress for the length of a command; with ``--json`` it shows nothing."""
    if as_json:
        yield silent
    elif sys.stderr.isatty():
        from harness.report.console import Terminal

        step = Step("starting")
        with Terminal(stderr=True).status(step):
            yield step.say
    else:
        yield _plain_lines()


class Step:
    """What is being done, since when and, where the messages count (``3/45``), for how long yet.

    A status line draws it again and again, so the time goes on while nothing is said.
    """

    def __init__(self, message: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._name, self._first, self._since = "", 0, clock()
        self.say(message)

    def say(self, message: str) -> None:
        name, count = _COUNT.sub("", message), _COUNT.search(message)
        done, total = (int(count[1]), int(count[2])) if count else (0, 0)
        self._message = message
        if name != self._name or done < self._first:
            self._name, self._first, self._since = name, done, self._clock()
        self._done, self._total, self._counted = done, total, self._clock()

    def __str__(self) -> str:
        """Such as ``suite 30/120 (12 s, about 40 s left)``."""
        now = self._clock()
        if now - self._since < _WORTH_SAYING:
            return plain(self._message)
        times = _duration(now - self._since)
        # What was done before the first count of this step cost nothing of its time.
        if self._done > self._first and self._done < self._total:
            each = (self._counted - self._since) / (self._done - self._first)
            left = each * (self._total - self._done) - (now - self._counted)
            times += f", about {_duration(max(left, 1))} left"
        return f"{plain(self._message)} ({times})"

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(str(self))


def _duration(seconds: float) -> str:
    """``40 s``, ``3 min`` from 100 s on, ``2 h 05 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _plain_lines() -> Progress:
    """One line per step: messages that differ only in a count such as 3/45 are one step."""
    said: set[str] = set()

    def say(message: str) -> None:
        step = _COUNT.sub("", message)
        if step not in said:
            said.add(step)
            print(f"hil: {plain(step)}", file=sys.stderr, flush=True)

    return say
