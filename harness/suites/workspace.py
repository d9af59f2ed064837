"""The folder that a suite runs in: the stand-in, the runner where the suite looks for it, logs.

It also holds the identity of the run, so that an interrupted run can be continued: the results of
its tests are taken over.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.suites.recorder import DONE, KEPT, RECORDED
from harness.suites.results import Selection, StandinMissing
from harness.suites.standin.install import install
from harness.suites.standin.main import RUNNERS
from harness.suites.standin.parameters import model_names
from harness.suites.suites import Suite, Tooling
from harness.system import paths
from harness.system.files import disk_errors, sha256_of, write_whole

_START_SECONDS = 60
_RUNNER_NAME = "arm_executor_runner"  # ExecuTorch runner_utils.py
_IDENTITY, _FINISHED, _EVENTS = "run.json", "finished", "events.jsonl"
# What computes an NPU's results: a run is not continued with another version of it.
_NPU_MODEL = ("harness/npu/**/*", "harness/formats/vela.py", "harness/formats/cop.py")


@dataclass(frozen=True)
class Workspace:
    """``root``: the folder of the suite's tests; ``environment``: for the suite's process and the
    stand-in."""

    directory: Path
    suite: Suite
    root: Path
    environment: dict[str, str]

    @property
    def standins(self) -> Path:
        """The commands with the names of the models."""
        return self.directory / "bin"

    @property
    def log(self) -> Path:
        """What pytest printed."""
        return self.directory / "pytest.log"

    @property
    def ini(self) -> Path:
        return self.directory / "pytest.ini"

    @property
    def events(self) -> Path:
        """The phases of all tests as JSON, each written as soon as it has ended."""
        return self.directory / _EVENTS

    @property
    def done(self) -> Path:
        """Ids of tests that pytest leaves out."""
        return self.directory / DONE

    @property
    def kept(self) -> Path:
        """By test, the files of its simulations, of tests that failed."""
        return self.directory / KEPT

    @property
    def recorded(self) -> Path:
        """Recordings of the other tests, for the store."""
        return self.directory / RECORDED

    @property
    def scratch(self) -> Path:
        """For temporary files of the suite; removed after the run."""
        return self.directory / "tmp"

    def save_identity(self, identity: dict[str, Any]) -> None:
        with disk_errors("preparing the suite's run"):
            write_whole(self.directory / _IDENTITY, json.dumps(identity))

    def finish(self) -> None:
        """From now on the run cannot be continued."""
        with disk_errors("ending the suite's run"):
            (self.directory / _FINISHED).write_text("")


def prepare(suite: Suite, elf: Path, tooling: Tooling | None = None) -> Workspace:
    """A new workspace with ``elf`` as the runner under test, for the suite of ``tooling`` or of
    the wheel."""
    if not elf.is_file():
        raise UsageError(f"there is no ELF {elf}", path=elf)
    root = suite.directory(tooling)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    directory = _runs() / f"{stamp}-{os.getpid()}"
    with disk_errors("preparing the suite's run"):
        for runner in suite.runners:
            (directory / runner).mkdir(parents=True)
            shutil.copyfile(elf, directory / runner / _RUNNER_NAME)
        workspace = Workspace(directory, suite, root, _environment(directory, tooling))
        for folder in (workspace.scratch, workspace.kept, workspace.recorded):
            folder.mkdir(parents=True)
        workspace.ini.write_text("[pytest]\n")
        workspace.done.write_text("")
    install(workspace.standins)
    return workspace


def require_standins(workspace: Workspace) -> None:
    """Raises StandinMissing unless the suite will find and can start each model."""
    path = workspace.environment["PATH"]
    for name in model_names():
        command = shutil.which(name, path=path)
        if command is None or Path(command).parent != workspace.standins:
            raise StandinMissing(name, f"found {command or 'nothing'} on PATH")
        try:
            done = subprocess.run(
                [command, "--version"],
                env=workspace.environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_START_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StandinMissing(name, str(error)) from error
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise StandinMissing(name, f"`--version` ends with {done.returncode}: {last}")


def _environment(directory: Path, tooling: Tooling | None) -> dict[str, str]:
    """One thread per worker: the suite's tensors are tiny, and the workers take all cores."""
    packages = [str(paths.import_root())]
    if tooling is not None:
        packages.insert(0, str(tooling.environment))
    path = [str(directory / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "EXECUTORCH_ROOT": str(directory),
        RUNNERS: str(directory / "arm_test"),  # ExecuTorch also looks in other places
        "HIL_HOME": str(paths.state_dir()),
        "PYTHONPATH": os.pathsep.join(packages),
        "TMPDIR": str(directory / "tmp"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the same plugins on every machine
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def identify(
    suite: Suite, elf: Path, selection: Selection, tooling: Tooling | None = None
) -> dict[str, Any]:
    """Everything that decides which results a run has."""
    return {
        "suite": suite.name,
        "elf": sha256_of(elf),
        "selection": json.loads(json.dumps(asdict(selection))),
        "executorch": version("executorch") if tooling is None else tooling.version,
        "npu_model": _npu_model(),
    }


def _npu_model() -> str:
    root = paths.import_root()
    files = {path for pattern in _NPU_MODEL for path in root.glob(pattern) if path.is_file()}
    content = hashlib.sha256()
    for path in sorted(path for path in files if "__pycache__" not in path.parts):
        content.update(path.read_bytes())
    return content.hexdigest()


def interrupted(identity: dict[str, Any]) -> list[dict[str, Any]]:
    """The phases of the newest unfinished run of this identity, of tests that ended in it."""
    for directory in sorted(_runs().glob("*"), reverse=True):
        try:
            same = json.loads((directory / _IDENTITY).read_text()) == identity
            lines = (directory / _EVENTS).read_text().splitlines()
        except (FileNotFoundError, ValueError):
            continue
        if same and not (directory / _FINISHED).exists():
            return _ended(lines)
    raise UsageError(
        "there is no interrupted run to resume",
        hint="it must have the same suite, options, ELF, ExecuTorch and NPU model",
    )


def _ended(lines: list[str]) -> list[dict[str, Any]]:
    phases = []
    for line in lines:
        try:
            phases.append(json.loads(line))
        except ValueError:  # cut off
            break
    ended = {phase["test"] for phase in phases if phase["when"] == "teardown"}
    return [phase for phase in phases if phase["test"] in ended]


def _runs() -> Path:
    return paths.state_dir() / "suites"
