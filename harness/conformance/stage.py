"""The directory a suite runs in: the stand-in, the runner where the suite looks for it, logs.

It also says which run it is, so that an interrupted one can be continued: its tests are not run
again, its results count.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.conformance.model import Selection, StandinMissing
from harness.conformance.notes import BLOBS, TESTS
from harness.conformance.recorder import KEPT, NOTES
from harness.conformance.remembered import seconds_of
from harness.conformance.suites import Suite, Tooling
from harness.errors import UsageError
from harness.standin.install import install
from harness.standin.main import RUNNERS
from harness.standin.parameters import model_names
from harness.system import paths, toolchain
from harness.system.files import disk_errors, sha256_of, write_whole

_START_SECONDS = 60
_RUNNER_NAME = "arm_executor_runner"  # ExecuTorch runner_utils.py
_IDENTITY = "run.json"
_FINISHED = "finished"
# What computes an NPU's results: those of another version may not be mixed with them.
_MODEL = ("harness/ethosu/**/*", "harness/formats/vela.py", "harness/formats/cop.py")
# What takes part in a simulation besides the runner and QEMU.
_SIMULATION = ("ethosu", "standin", "attend", "formats", "observe", "system")


@dataclass(frozen=True)
class SuiteStage:
    directory: Path
    suite: Suite
    root: Path  # of the suite's tests
    environment: dict[str, str]

    @property
    def log(self) -> Path:
        return self.directory / "pytest.log"

    @property
    def ini(self) -> Path:
        return self.directory / "pytest.ini"

    @property
    def events(self) -> Path:
        """What became of each test, written as it becomes known."""
        return self.directory / "events.jsonl"

    @property
    def done(self) -> Path:
        """Ids of tests that need not run again."""
        return self.directory / "done.txt"

    @property
    def kept(self) -> Path:
        """By test, the files of the simulator's runs in tests that did not pass."""
        return self.directory / "kept"

    @property
    def notes(self) -> Path:
        """What the workers note of the tests, to be remembered."""
        return self.directory / NOTES

    @property
    def seconds(self) -> Path:
        """How long each test took the last time."""
        return self.directory / "seconds.json"

    @property
    def scratch(self) -> Path:
        """For the suite's temporary files; removed after the run."""
        return self.directory / "tmp"


def _directory_of_runs() -> Path:
    return paths.state_dir() / "conformance"


def prepare(suite: Suite, elf: Path, tooling: Tooling | None = None) -> SuiteStage:
    """A fresh stage with ``elf`` as the runner under test; the suite is that of ``tooling``, or
    the wheel's."""
    if not elf.is_file():
        raise UsageError(f"there is no ELF {elf}", path=elf)
    root = suite.directory(tooling)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    directory = _directory_of_runs() / f"{stamp}-{os.getpid()}"
    with disk_errors("preparing the conformance run"):
        for runner in suite.runners:
            (directory / runner).mkdir(parents=True)
            shutil.copyfile(elf, directory / runner / _RUNNER_NAME)
        stage = SuiteStage(directory, suite, root, _environment(directory, tooling))
        for folder in (stage.scratch, stage.kept, stage.notes / TESTS, stage.notes / BLOBS):
            folder.mkdir(parents=True)
        stage.ini.write_text("[pytest]\n")
        stage.done.write_text("")
        stage.seconds.write_text(json.dumps(seconds_of(suite.name)))
    install(directory / "bin")
    return stage


def require_standins(stage: SuiteStage) -> None:
    """Raises StandinMissing unless the suite will find and can start each of them."""
    path = stage.environment["PATH"]
    for name in model_names():
        found = shutil.which(name, path=path)
        if found is None or Path(found).parent != stage.directory / "bin":
            raise StandinMissing(name, f"found {found or 'nothing'} on PATH")
        try:
            done = subprocess.run(
                [found, "--version"], env=stage.environment, capture_output=True, text=True,
                errors="replace", timeout=_START_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StandinMissing(name, str(error)) from error
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise StandinMissing(name, f"`--version` ends with {done.returncode}: {said}")


def _environment(directory: Path, tooling: Tooling | None) -> dict[str, str]:
    """One thread per worker: the suite's tensors are tiny and the cores are taken already."""
    packages = [str(paths.import_root())]
    if tooling is not None:
        packages.insert(0, str(tooling.environment))
    path = [str(directory / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "EXECUTORCH_ROOT": str(directory),
        KEPT: str(directory / "kept"),
        RUNNERS: str(directory / "arm_test"),  # ExecuTorch's look-up goes on in other places
        "HIL_HOME": str(paths.state_dir()),
        "PYTHONPATH": os.pathsep.join(packages),
        "TMPDIR": str(directory / "tmp"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the same ones, whatever else is installed
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def mark(stage: SuiteStage, identity: dict[str, Any]) -> None:
    """Say which run this is, so that it can be continued."""
    with disk_errors("preparing the conformance run"):
        write_whole(stage.directory / _IDENTITY, json.dumps(identity))


def finish(stage: SuiteStage) -> None:
    with disk_errors("ending the conformance run"):
        (stage.directory / _FINISHED).write_text("")


def identify(
    suite: Suite, elf: Path, selection: Selection, tooling: Tooling | None = None
) -> dict[str, Any]:
    """Everything that decides which results a run gives."""
    return {
        "suite": suite.name,
        "elf": sha256_of(elf),
        "selection": json.loads(json.dumps(asdict(selection))),
        "executorch": version("executorch") if tooling is None else tooling.version,
        "npu_model": _content(_MODEL),
    }


def simulated_with(elf: Path) -> str:
    """The sha256 of all that takes part in a simulation: of tests that were simulated with the same
    the results are the same."""
    sources = [f"harness/{room}/**/*" for room in _SIMULATION]
    qemu = toolchain.require("qemu-system-arm")
    parts = [sha256_of(elf), _content(sources), qemu.version, sys.version, version("numpy")]
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _content(patterns: Sequence[str]) -> str:
    content = hashlib.sha256()
    root = paths.import_root()
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    for path in sorted(path for path in found if "__pycache__" not in path.parts):
        content.update(path.read_bytes())
    return content.hexdigest()


def interrupted(wanted: dict[str, Any]) -> tuple[str, ...]:
    """The events of the newest unfinished run of this identity."""
    for directory in sorted(_directory_of_runs().glob("*"), reverse=True):
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
