"""Progress on stderr: a status line at a terminal, a line for each long step elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.cli.verb import terminal, wants_json
from harness.core.safe_text import plain
from harness.system.progress import COUNT, Progress, silent, timed

if TYPE_CHECKING:
    from rich.console import Console

LONG_S = 5.0  # a log has a line for a step that takes longer
_DONE = ("exported", "simulated", "built")  # ends of a subject, at which nobody waits for it


@contextmanager
def progress_shown() -> Iterator[Progress]:
    """Return a Progress for the length of a command; with ``--json`` it shows nothing."""
    if wants_json():
        yield silent
    elif sys.stderr.isatty():
        with status_line(terminal(stderr=True)) as say, timed(say) as progress:
            yield progress
    else:
        with _long_steps() as say, timed(say) as progress:
            yield progress


@contextmanager
def status_line(
    console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Return the step, its time and, with a count (``3/45``), the time left.

    An example: ``suite 30/120 0:00:12 0:00:40 left``."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.SpinnerColumn(),
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[left]}"),
    )
    with rich_progress.Progress(*columns, console=console, transient=True, get_time=clock) as line:
        task = line.add_task("starting", total=None, left="")
        step = ""

        def say(message: str) -> None:
            nonlocal step
            name, count = COUNT.sub("", message), COUNT.search(message)
            if name != step:
                step = name
                line.reset(task)
                line.tasks[0].total = None  # reset() cannot set it to None
            if count:
                line.update(task, completed=int(count[1]), total=int(count[2]))
            line.update(task, description=plain(message), left="left" if count else "")

        yield say


@contextmanager
def _long_steps() -> Iterator[Progress]:
    """Print one line per step that lasts. Thread-safe.

    Messages that differ only in a count such as 3/45 are one step, and a step lasts until the next
    of its subject."""
    shown: set[str] = set()
    waiting: dict[str, tuple[str, threading.Timer]] = {}  # by subject
    lock = threading.Lock()

    def say(message: str) -> None:
        step = COUNT.sub("", message)
        subject = step.partition(": ")[0]
        with lock:
            last, timer = waiting.get(subject, ("", None))
            if step == last or step in shown:
                return
            if timer is not None:
                timer.cancel()
            if step.endswith(_DONE):
                return
            timer = threading.Timer(LONG_S, show, (step,))
            timer.daemon = True
            waiting[subject] = step, timer
        timer.start()

    def show(step: str) -> None:
        with lock:
            shown.add(step)
        print(f"hil: {plain(step)}", file=sys.stderr, flush=True)

    try:
        yield say
    finally:
        for _, timer in waiting.values():
            timer.cancel()
            timer.join()  # it may be printing
