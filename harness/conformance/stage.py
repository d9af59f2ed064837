"""The directory a suite runs in: the stand-in, the runner where the suite looks for it, logs."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness import paths
from harness.build_plan import executorch_package
from harness.disk import disk_errors
from harness.errors import InfraError, UsageError
from harness.standin.install import install

# ExecuTorch runner_utils.py: directory and name it looks for below $EXECUTORCH_ROOT.
_RUNNER = Path("arm_test/arm_semihosting_executor_runner_corstone-300_cortex-m55")
_RUNNER_NAME = "arm_executor_runner"


@dataclass(frozen=True)
class Stage:
    directory: Path
    suite: Path
    environment: dict[str, str]

    @property
    def log(self) -> Path:
        return self.directory / "pytest.log"

    @property
    def ini(self) -> Path:
        return self.directory / "pytest.ini"

    @property
    def scratch(self) -> Path:
        """For the suite's temporary files; removed after the run."""
        return self.directory / "tmp"


def cortex_m_suite() -> Path:
    """Where the installed wheel has it."""
    suite = executorch_package() / "backends" / "cortex_m" / "test"
    if not (suite / "ops").is_dir():
        raise InfraError(
            f"the installed executorch has no Cortex-M suite (no {suite}/ops)",
            hint="pip install executorch==1.5.1",
        )
    return suite


def prepare(elf: Path) -> Stage:
    """A fresh stage with ``elf`` as the runner under test."""
    if not elf.is_file():
        raise UsageError(f"there is no ELF {elf}")
    suite = cortex_m_suite()
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    directory = paths.state_dir() / "conformance" / f"{stamp}-{os.getpid()}"
    with disk_errors("preparing the conformance run"):
        (directory / _RUNNER).mkdir(parents=True)
        shutil.copyfile(elf, directory / _RUNNER / _RUNNER_NAME)
        stage = Stage(directory, suite, _environment(directory))
        stage.scratch.mkdir()
        (directory / "consoles").mkdir()
        stage.ini.write_text("[pytest]\n")
    install(directory / "bin")
    return stage


def _environment(directory: Path) -> dict[str, str]:
    """One thread per worker: the suite's tensors are tiny and the cores are taken already."""
    path = [str(directory / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "EXECUTORCH_ROOT": str(directory),
        "HIL_CONFORMANCE_CONSOLES": str(directory / "consoles"),
        "HIL_HOME": str(paths.state_dir()),
        "PYTHONPATH": str(paths.project_root()),
        "TMPDIR": str(directory / "tmp"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
