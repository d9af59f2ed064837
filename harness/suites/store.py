"""The programs that a suite's tests exported, so that a later run only simulates them again.

A folder of ``.hil/cache/suite-exports`` belongs to one suite and one ``export_key``:

    tests/DIGEST/     recording of a test, by a digest of its id, sealed with the id as its key
      entry.json      the seal, with what pytest reported of the test's phases
      N.json          one simulation in the test: arguments, status, files (``standin.record``)
      N.log, N/       its console; the files of its directory, program and inputs among them
    collected/DIGEST/ the tests that pytest collected for a keyword, by a digest of the keyword
      entry.json      the seal, with the tests

A recording is sealed when it is complete, and written under a lock: processes may share the store,
and a killed process leaves its complete recordings.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from harness.export.checkout import CheckoutExporter
from harness.suites.standin.record import REFUSED, Simulation, read_simulation
from harness.suites.suites import Suite
from harness.system import artifact_cache
from harness.system.files import MALFORMED, content_digest
from harness.system.git import files_below
from harness.system.locks import in_use
from harness.system.paths import cache_dir

_FORMAT = 5  # raise it when the meaning of a recording changes
_COLLECTED, _TESTS = "collected", "tests"
_NOT_PYTHON = (".pyc", ".c", ".cc", ".cpp", ".h", ".hpp", ".S", ".md")  # an export reads none
_VARIABLES = ("TORCH", "PYTORCH", "EXECUTORCH", "ARM_", "TOSA", "VELA", "TEST_", "FLAT", "PYTHONH")


@dataclass(frozen=True)
class Recording:
    """A test that did not fail: pytest's reports as ``recorder`` writes them, the simulations, and
    the workspace of the run."""

    test: str
    phases: tuple[dict[str, Any], ...]
    simulations: tuple[Simulation, ...]
    workspace: str

    @property
    def seconds(self) -> float:
        return sum(float(phase["seconds"]) for phase in self.phases)


@dataclass(frozen=True)
class ExportStore:
    folder: Path

    @classmethod
    def of(cls, suite: str, key: str) -> ExportStore:
        """The store of a suite; ``key`` is from ``export_key``."""
        return cls(cache_dir("suite-exports") / f"{suite}-{key[:16]}")

    def recording(self, test: str) -> Recording | None:
        """The recording of a test; None when there is none or it is damaged."""
        folder = self.folder / _TESTS / artifact_cache.key_of(test)
        entry = artifact_cache.load(folder, test)
        if entry is None:
            return None
        with suppress(OSError, *MALFORMED):
            simulations = tuple(read_simulation(path) for path in sorted(folder.glob("*.log")))
            phases, workspace = entry.facts["phases"], entry.facts["workspace"]
            return Recording(test, tuple(phases), simulations, workspace)
        return None

    def collected(self, keyword: str | None) -> tuple[list[str], list[dict[str, Any]]] | None:
        """The tests that match a keyword, and pytest's reports on files that it could not collect.
        None for a keyword that was not used before: only pytest knows its matches."""
        key = artifact_cache.key_of(keyword or "")
        entry = artifact_cache.load(self.folder / _COLLECTED / key, key)
        return None if entry is None else (entry.facts["tests"], entry.facts["phases"])

    def prepare(self) -> None:
        """Marks the store as in use and makes its folders. Raises OSError."""
        in_use(self.folder)
        for part in (_TESTS, _COLLECTED):
            (self.folder / part).mkdir(parents=True, exist_ok=True)

    def save_recording(
        self, simulated: Path, workspace: Path, test: str, phases: Sequence[Mapping[str, Any]]
    ) -> None:
        """Moves the stand-in's files from ``simulated`` into a recording. Records nothing when a
        simulation was refused or cannot be repeated from its files."""
        logs = sorted(simulated.glob("*.log"))
        if (simulated / REFUSED).exists():
            return
        try:
            if not all(read_simulation(log).repeatable for log in logs):
                return
        except (OSError, *MALFORMED):  # a simulation that was killed has no N.json
            return
        folder = self.folder / _TESTS / artifact_cache.key_of(test)
        with artifact_cache.locked(self.folder):
            artifact_cache.clear(folder)
            if logs:
                simulated.rename(folder)
            else:
                folder.mkdir()
            facts = {"phases": list(phases), "workspace": str(workspace)}
            artifact_cache.seal(folder, test, facts)

    def save_collection(
        self, keyword: str, tests: Sequence[str], phases: Sequence[Mapping[str, Any]]
    ) -> None:
        """``tests`` before shard and sample; ``phases`` of files that could not be collected."""
        key = artifact_cache.key_of(keyword)
        folder = self.folder / _COLLECTED / key
        folder.mkdir(exist_ok=True)
        artifact_cache.seal(folder, key, {"tests": list(tests), "phases": list(phases)})

    def discard(self) -> None:
        """Removes everything, other runs' recordings too."""
        with artifact_cache.locked(self.folder):
            artifact_cache.clear(self.folder)


def export_key(suite: Suite, exporter: CheckoutExporter | None) -> str:
    """Equal keys mean that every test of the suite exports the same. Deliberately coarse: the
    content of ExecuTorch's folder with its tests, the versions of all packages, the interpreter,
    and the variables that torch and ExecuTorch read."""
    package = suite.directory(exporter)
    for _ in Path(suite.root).parts:
        package = package.parent
    read = (f for f in files_below(package) if f.is_file() and not f.name.endswith(_NOT_PYTHON))
    facts = [
        _FORMAT,
        sys.version,
        platform.platform(),
        sorted(f"{package.metadata['Name']} {package.version}" for package in distributions()),
        sorted(
            (name, value)
            for name, value in os.environ.items()
            if name.startswith(_VARIABLES) and name != "EXECUTORCH_ROOT"  # a run sets its own
        ),
        content_digest(read, package),
    ]
    return artifact_cache.key_of(facts)
