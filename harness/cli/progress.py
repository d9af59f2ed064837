"""What is going on right now, on stderr: a status line at a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors.plain import plain
from harness.system.progress import Progress, silent


@contextmanager
def progress_shown(as_json: bool) -> Iterator[Progress]:
    """A Progress for the length of a command; with ``--json`` it shows nothing."""
    if as_json:
        yield silent
    elif sys.stderr.isatty():
        from rich.text import Text

        from harness.report.console import Terminal

        with Terminal(stderr=True).status("starting") as status:
            yield lambda message: status.update(Text(plain(message)))
    else:
        yield _plain_lines()


def _plain_lines() -> Progress:
    """One line per step: messages that differ only in a count such as 3/45 are one step."""
    said: set[str] = set()

    def say(message: str) -> None:
        step = re.sub(r"\s*\d+/\d+", "", message)
        if step not in said:
            said.add(step)
            print(f"hil: {plain(step)}", file=sys.stderr, flush=True)

    return say
