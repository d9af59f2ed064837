"""What is going on right now, on stderr: a status line at a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]


def silent(_message: str) -> None:
    """A Progress that says nothing."""


@contextmanager
def terminal_progress(*, quiet: bool = False) -> Iterator[Progress]:
    """A Progress for the length of a command; ``quiet`` (``--json``) shows nothing."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("starting") as status:
            yield lambda message: status.update(message)
    else:
        yield _plain_lines()


def _plain_lines() -> Progress:
    """One line per step: messages that differ only in a count such as 3/45 are one step."""
    said: set[str] = set()

    def say(message: str) -> None:
        step = re.sub(r"\s*\d+/\d+", "", message)
        if step not in said:
            said.add(step)
            print(f"hil: {step}", file=sys.stderr, flush=True)

    return say
