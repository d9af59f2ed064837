"""Work for dask workers that takes the place of a case, where a test is about who does it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from harness.nightly.history.nights import Row
from harness.nightly.pool import Task
from tests.nightly.history.made import row


def told(task: Task, note: str) -> tuple[Row, ...]:
    (one,) = task.job.planned
    made = row(1, "PASS", one.case, attempt=task.attempt)
    return (replace(made, night=task.night.id, notes=(note,)),)


def who(task: Task, store: str) -> tuple[Row, ...]:
    """The note has the worker's home and the simulator that the task asks for."""
    time.sleep(0.05)  # so that the others get some, too
    return told(task, f"{Path(os.environ['HIL_HOME']).name} {task.job.simulator}")


def stuck(task: Task, store: str) -> tuple[Row, ...]:
    """A case that begins, says so in the folder ``store``, and does not end while ``hold`` is
    there."""
    (Path(store) / f"{task.job.case.model}-{task.attempt}").write_text(str(os.getpid()))
    while (Path(store) / "hold").exists():
        time.sleep(0.02)
    return told(task, "")


def broken(task: Task, store: str) -> tuple[Row, ...]:
    raise ValueError("a defect of the worker's")
