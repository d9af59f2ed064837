"""A test done again from its notes: what it exported is simulated, and has to come to the same.

A suite's verdict on a test follows from what it exported and from what the simulations gave. When
the programs and their inputs are those of an earlier run, and every simulation ends with the same
status, says the same and writes the same bytes, then so is the verdict. Where anything is
different nothing is said, and the test has to be run.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from harness.conformance.notes import Note, Simulation, given_back, sha256, what_counts
from harness.conformance.recorder import excerpt
from harness.conformance.remembered import Remembered, simulated_by
from harness.conformance.stage import SuiteStage
from harness.standin.client import ask
from harness.standin.install import packages_of_npu
from harness.standin.resident import resident
from harness.system.progress import Progress


@dataclass(frozen=True)
class Replayed:
    """``events`` as pytest reported them, with the consoles of now."""

    test: str
    events: tuple[dict[str, Any], ...]


def replay(
    notes: Sequence[Note],
    valid: Remembered,
    stage: SuiteStage,
    workers: int,
    by: str,
    progress: Progress,
) -> list[Replayed]:
    """Those that came to the same, the longest started first. ``by``: what simulates now."""
    done: list[Replayed] = []
    ordered = sorted(notes, key=lambda note: (not note.simulations, -note.seconds))
    places: SimpleQueue[str] = SimpleQueue()
    with ExitStack() as stack:
        if any(note.simulations for note in notes):
            for _ in range(min(workers, len(notes))):
                given = resident(packages_of_npu(), stage.environment)
                places.put(stack.enter_context(given))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        work: Iterator[Replayed | None] = pool.map(
            lambda note: _replayed(note, valid, stage, places, by), ordered
        )
        for number, found in enumerate(work, start=1):
            progress(f"conformance, exports from the cache {number}/{len(ordered)}")
            if found is not None:
                done.append(found)
    return done


def _replayed(
    note: Note, valid: Remembered, stage: SuiteStage, places: SimpleQueue[str], by: str
) -> Replayed | None:
    if not note.simulations:
        return Replayed(note.test, note.events)
    started = time.monotonic()
    consoles = []
    place = places.get()
    try:
        for simulation in note.simulations:
            console = _simulated(simulation, valid, stage, place)
            if console is None:
                return None
            consoles.append(base64.b64encode(excerpt(console)).decode("ascii"))
    finally:
        places.put(place)
    seconds = time.monotonic() - started
    assert valid.folder is not None
    simulated_by(valid.folder, note, by)
    events = tuple(
        {**event, "seconds": seconds, "consoles": consoles}
        if event["when"] == "call"
        else {**event, "seconds": 0.0}
        for event in note.events
    )
    return Replayed(note.test, events)


def _simulated(
    simulation: Simulation, valid: Remembered, stage: SuiteStage, place: str
) -> bytes | None:
    """The console; None when it did not come to the same."""
    cwd = Path(tempfile.mkdtemp(dir=stage.scratch))
    try:
        for name, digest in simulation.given.items():
            (cwd / name).write_bytes(valid.content(digest))
        environment = {os.fsencode(k): os.fsencode(v) for k, v in stage.environment.items()}
        argv = given_back(simulation.argv, cwd, stage.directory)
        with tempfile.TemporaryFile(dir=stage.scratch) as out:
            with open(os.devnull, "wb") as rest:
                descriptors = (out.fileno(), rest.fileno())
                status = ask(place, simulation.model, argv, str(cwd), environment, descriptors)
            out.seek(0)
            console = out.read()
        files = {path.name: sha256(path) for path in cwd.iterdir() if path.is_file()}
        same = (
            status == simulation.status
            and what_counts(console) == simulation.said
            and files == {**simulation.given, **simulation.made}
        )
        return console if same else None
    except OSError:
        return None
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
