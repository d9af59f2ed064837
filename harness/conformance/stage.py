"""The directory a suite runs in: the stand-in, the runner where the suite looks for it, logs."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.conformance.suites import Suite
from harness.errors import UsageError
from harness.standin.install import install
from harness.system import paths
from harness.system.files import disk_errors

_RUNNER_NAME = "arm_executor_runner"  # ExecuTorch runner_utils.py


@dataclass(frozen=True)
class Stage:
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
    def scratch(self) -> Path:
        """For the suite's temporary files; removed after the run."""
        return self.directory / "tmp"


def directory_of_runs() -> Path:
    return paths.state_dir() / "conformance"


def prepare(suite: Suite, elf: Path) -> Stage:
    """A fresh stage with ``elf`` as the runner under test."""
    if not elf.is_file():
        raise UsageError(f"there is no ELF {elf}")
    root = suite.directory
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    directory = directory_of_runs() / f"{stamp}-{os.getpid()}"
    with disk_errors("preparing the conformance run"):
        for runner in suite.runners:
            (directory / runner).mkdir(parents=True)
            shutil.copyfile(elf, directory / runner / _RUNNER_NAME)
        stage = Stage(directory, suite, root, _environment(directory))
        for folder in (stage.scratch, stage.kept):
            folder.mkdir()
        stage.ini.write_text("[pytest]\n")
        stage.done.write_text("")
    install(directory / "bin")
    return stage


def _environment(directory: Path) -> dict[str, str]:
    """One thread per worker: the suite's tensors are tiny and the cores are taken already."""
    path = [str(directory / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "EXECUTORCH_ROOT": str(directory),
        "HIL_CONFORMANCE_KEPT": str(directory / "kept"),
        "HIL_HOME": str(paths.state_dir()),
        "PYTHONPATH": str(paths.project_root()),
        "TMPDIR": str(directory / "tmp"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
