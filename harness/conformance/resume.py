"""An interrupted run is continued: its tests are not run again, its results count."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.conformance.model import Selection
from harness.conformance.stage import Stage, directory_of_runs
from harness.conformance.suites import Suite
from harness.errors import UsageError
from harness.system import paths
from harness.system.files import disk_errors, sha256_of, write_whole

_IDENTITY = "run.json"
_FINISHED = "finished"
# What computes an NPU's results: those of another version may not be mixed with them.
_MODEL = ("harness/ethosu/**/*.py", "harness/formats/vela.py", "harness/formats/cop.py")


def mark(stage: Stage, identity: dict[str, Any]) -> None:
    """Say which run this is, so that it can be continued."""
    with disk_errors("preparing the conformance run"):
        write_whole(stage.directory / _IDENTITY, json.dumps(identity))


def finish(stage: Stage) -> None:
    with disk_errors("ending the conformance run"):
        (stage.directory / _FINISHED).write_text("")


def identity(suite: Suite, elf: Path, selection: Selection) -> dict[str, Any]:
    """Everything that decides which results a run gives."""
    model = hashlib.sha256()
    root = paths.project_root()
    for path in sorted(path for pattern in _MODEL for path in root.glob(pattern)):
        model.update(path.read_bytes())
    return {
        "suite": suite.name,
        "elf": sha256_of(elf),
        "selection": json.loads(json.dumps(asdict(selection))),
        "executorch": version("executorch"),
        "npu_model": model.hexdigest(),
    }


def interrupted(wanted: dict[str, Any]) -> tuple[str, ...]:
    """The events of the newest unfinished run of this identity."""
    for directory in sorted(directory_of_runs().glob("*"), reverse=True):
        try:
            found = json.loads((directory / _IDENTITY).read_text())
            events = (directory / "events.jsonl").read_text().splitlines()
        except (FileNotFoundError, ValueError):
            continue
        if found == wanted and not (directory / _FINISHED).exists():
            return _whole(events)
    raise UsageError(
        "there is no interrupted run to resume",
        hint="it must have the same suite, options, ELF, ExecuTorch and NPU model",
    )


def _whole(events: list[str]) -> tuple[str, ...]:
    """Without those of tests that did not come to their end."""
    read = []
    for line in events:
        try:
            read.append((json.loads(line), line))
        except ValueError:  # cut off
            break
    ended = {event["test"] for event, _ in read if event["when"] == "teardown"}
    return tuple(line for event, line in read if event["test"] in ended)
