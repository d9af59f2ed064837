"""What a worker notes of the tests it ran, to be remembered when the run is over.

For each test that did not fail: what pytest reported of it, and each simulation in it with the
contents of all files that it was given and the sha256 of all that it made. In a folder like this:

    collected.json      ids of the suite's tests that match, before shard and sample; what could
                        not be collected
    loaded-PID.json     files of the modules that a worker had imported at its end
    tests/SHA.json      one test, by the sha256 of its id
    blobs/SHA           contents
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.system.files import write_whole
from harness.system.json_file import MALFORMED

TESTS, BLOBS, COLLECTED = "tests", "blobs", "collected.json"
_CWD, _STAGE = "{cwd}", "{stage}"
# What our runner logs besides its results: sizes, ticks, places in its source.
_CHATTER = b"I ["


@dataclass(frozen=True)
class Simulation:
    """``argv``: with {cwd} and {stage} for these folders. ``given`` and ``made``: sha256 by the
    name of the file. ``said``: of the console without what the runner logs of itself."""

    model: str
    argv: tuple[str, ...]
    status: int
    given: dict[str, str]
    made: dict[str, str]
    said: str


@dataclass(frozen=True)
class Note:
    """``events``: what pytest reported of each phase of the test. ``by``: with what it was
    simulated and came to this, the last first."""

    test: str
    events: tuple[dict[str, Any], ...]
    simulations: tuple[Simulation, ...]
    by: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(float(event["seconds"]) for event in self.events)

    def save(self, folder: Path) -> None:
        fields = asdict(self)
        write_whole(path_of(folder, self.test), json.dumps({**fields, "seal": _seal(fields)}))


def path_of(folder: Path, test: str) -> Path:
    return folder / TESTS / f"{hashlib.sha256(test.encode()).hexdigest()}.json"


def read_note(path: Path) -> Note | None:
    """None for what is not there, or not as it was written."""
    try:
        fields = json.loads(path.read_text("utf-8"))
        seal = fields.pop("seal")
        if seal != _seal(fields):
            return None
        simulations = tuple(
            Simulation(**{**one, "argv": tuple(one["argv"])}) for one in fields["simulations"]
        )
        return Note(fields["test"], tuple(fields["events"]), simulations, tuple(fields["by"]))
    except (OSError, *MALFORMED):
        return None


def _seal(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def note_test(
    folder: Path, stage: Path, test: str, events: Sequence[dict[str, Any]], record: Path, by: str
) -> None:
    """``record``: the folder that the stand-in filled during the test, if it did; ``by``: what
    simulated. Nothing is noted of a test that failed, or whose simulations cannot be done again."""
    if any(event["outcome"] == "failed" for event in events):
        return
    simulations = []
    for log in sorted(record.glob("*.log")):
        simulation = _simulation(folder, stage, log)
        if simulation is None:
            return
        simulations.append(simulation)
    Note(test, tuple(events), tuple(simulations), (by,) if simulations else ()).save(folder)


def _simulation(folder: Path, stage: Path, log: Path) -> Simulation | None:
    try:
        told = json.loads(log.with_suffix(".json").read_text("utf-8"))
    except FileNotFoundError:  # it did not come to its end
        return None
    if not told["whole"]:
        return None
    files = log.with_suffix("")
    return Simulation(
        told["model"],
        tuple(w.replace(told["cwd"], _CWD).replace(str(stage), _STAGE) for w in told["argv"]),
        told["status"],
        {name: _keep(folder, (files / name).read_bytes()) for name in told["given"]},
        {name: sha256(files / name) for name in told["made"]},
        what_counts(log.read_bytes()),
    )


def given_back(argv: Sequence[str], cwd: Path, stage: Path) -> list[str]:
    return [word.replace(_CWD, str(cwd)).replace(_STAGE, str(stage)) for word in argv]


def what_counts(console: bytes) -> str:
    """The sha256 of what a suite can look at: other builds of a runner differ in the rest."""
    lines = (line for line in console.splitlines() if not line.startswith(_CHATTER))
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _keep(folder: Path, content: bytes) -> str:
    name = hashlib.sha256(content).hexdigest()
    place = folder / BLOBS / name
    if not place.exists():
        write_whole(place, content)
    return name


def note_collection(
    folder: Path, keyword: str, ids: Sequence[str], events: Sequence[dict[str, Any]]
) -> None:
    """``events``: of what could not be collected."""
    fields = {"keyword": keyword, "ids": list(ids), "events": list(events)}
    write_whole(folder / COLLECTED, json.dumps(fields))


def note_loaded(folder: Path) -> None:
    """Of the harness only what watches the tests: what simulates is not asked for its version, but
    for its results."""
    found = (
        getattr(module, "__file__", None)
        for name, module in list(sys.modules.items())
        if not name.startswith("harness.") or name.startswith("harness.conformance.")
    )
    paths = sorted({os.path.abspath(path) for path in found if isinstance(path, str)})
    write_whole(folder / f"loaded-{os.getpid()}.json", json.dumps(paths))
