"""Runs pytest over a suite: the folder that it runs in, and the process.

The folder has the stand-in, the runner where the suite looks for it, and logs. The events of pytest
and its workers are read as they arrive.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError, UsageError
from harness.core.safe_text import counted
from harness.export.checkout import CheckoutExporter
from harness.suites.recorder import KEPT, REQUEST
from harness.suites.results import Selection, StandinMissing
from harness.suites.standin.command_line import model_names
from harness.suites.standin.install import install
from harness.suites.standin.main import RUNNERS_VARIABLE
from harness.suites.store import ExportStore
from harness.suites.suites import Suite
from harness.system import paths
from harness.system.call import CallFailed, TiedProcess, call
from harness.system.files import disk_errors, write_whole
from harness.system.progress import Progress

_START_SECONDS = 60
_RUNNER_NAME = "arm_executor_runner"  # ExecuTorch runner_utils.py
_SESSION_SECONDS = 7200.0
_PYTEST_USAGE_ERROR = 4  # pytest's exit status; 5: no test was collected
_PYTEST_ENDED = (0, 1, 2, 5)
_STANDIN_FOLDER, _SCRATCH_FOLDER = "bin", "tmp"


@dataclass(frozen=True)
class SuiteWorkspace:
    """``root``: the folder of the suite's tests; ``environment``: for the suite's process and the
    stand-in."""

    directory: Path
    suite: Suite
    root: Path
    environment: dict[str, str]

    @property
    def standin_folder(self) -> Path:
        """The commands with the names of the models."""
        return self.directory / _STANDIN_FOLDER

    @property
    def log(self) -> Path:
        """The output of pytest."""
        return self.directory / "pytest.log"

    @property
    def ini(self) -> Path:
        return self.directory / "pytest.ini"

    @property
    def kept(self) -> Path:
        """The files of failed tests' simulations, by test."""
        return self.directory / KEPT

    @property
    def scratch(self) -> Path:
        """For temporary files of the suite; removed after the run."""
        return self.directory / _SCRATCH_FOLDER


def prepare(suite: Suite, elf: Path, exporter: CheckoutExporter | None = None) -> SuiteWorkspace:
    """Makes a workspace with ``elf`` as the runner under test, for the suite of ``exporter`` or of
    the wheel. Raises UsageError, InfraError, DiskError."""
    if not elf.is_file():
        raise UsageError(f"there is no ELF {elf}", path=elf)
    root = suite.directory(exporter)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    directory = paths.state_dir() / "suites" / f"{stamp}-{os.getpid()}"
    with disk_errors("preparing the suite's run"):
        for runner in suite.runners:
            (directory / runner).mkdir(parents=True)
            shutil.copyfile(elf, directory / runner / _RUNNER_NAME)
        workspace = SuiteWorkspace(directory, suite, root, _environment(directory, exporter))
        for folder in (workspace.scratch, workspace.kept):
            folder.mkdir(parents=True)
        workspace.ini.write_text("[pytest]\n")
    install(workspace.standin_folder)
    return workspace


def require_standins(workspace: SuiteWorkspace) -> None:
    """Raises StandinMissing unless the suite will find and can start each model."""
    path = workspace.environment["PATH"]
    for name in model_names():
        command = shutil.which(name, path=path)
        if command is None or Path(command).parent != workspace.standin_folder:
            raise StandinMissing(name, f"found {command or 'nothing'} on PATH")
        try:
            call([command, "--version"], _START_SECONDS, environment=workspace.environment)
        except (OSError, CallFailed) as error:
            raise StandinMissing(name, f"`--version` fails: {error}") from error


def _environment(directory: Path, exporter: CheckoutExporter | None) -> dict[str, str]:
    """One thread per worker: the suite's tensors are tiny, and the workers take all cores."""
    packages, bytecode = [str(paths.import_root())], {}
    if exporter is not None:
        packages.insert(0, str(exporter.environment))
        bytecode["PYTHONDONTWRITEBYTECODE"] = "1"  # the environment is sealed
    own = [str(directory / _STANDIN_FOLDER), str(Path(sys.executable).parent)]
    return {
        **os.environ,
        **bytecode,
        "PATH": os.pathsep.join([*own, os.environ.get("PATH", "")]),
        "EXECUTORCH_ROOT": str(directory),
        RUNNERS_VARIABLE: str(directory / "arm_test"),  # ExecuTorch also looks in other places
        "HIL_HOME": str(paths.state_dir()),
        "PYTHONPATH": os.pathsep.join(packages),
        "TMPDIR": str(directory / _SCRATCH_FOLDER),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the same plugins on every machine
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def run_session(
    workspace: SuiteWorkspace,
    store: ExportStore,
    selection: Selection,
    workers: int,
    progress: Progress,
    done: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Runs the selected tests without those of ``done``; their exports go to ``store``. Returns
    their phases in the order in which they ended, each the fields of ``results.Phase`` with base64
    consoles.

    Raises UsageError when nothing is selected or pytest refuses the selection, and InfraError
    when pytest itself fails or does not end in time.
    """
    done = sorted(set(done))
    read, write = os.pipe()
    request = {
        "only": workspace.suite.only,
        "selection": asdict(selection),
        "done": done,
        "store": str(store.folder),
        "events": write,
    }
    with disk_errors("running the suite"), workspace.log.open("wb") as log:
        write_whole(workspace.directory / REQUEST, json.dumps(request))
        child = TiedProcess(
            _argv(workspace, selection.keyword, workers),
            [write],
            cwd=workspace.directory,
            env=workspace.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    os.close(write)
    timed_out = threading.Event()

    def end_overdue() -> None:
        timed_out.set()
        child.end()

    timer = threading.Timer(_SESSION_SECONDS, end_overdue)
    timer.start()
    collected: list[list[str]] = []
    try:
        with os.fdopen(read, "rb") as events:
            phases = list(_phases(events, collected, len(done), progress))
        status = child.wait()
    finally:
        timer.cancel()
        child.end()
    if timed_out.is_set() and status not in _PYTEST_ENDED:
        raise InfraError(
            f"the suite did not end within {_SESSION_SECONDS:g} s and was ended",
            hint=f"select fewer tests with -k, --shard or --sample; see {workspace.log}",
        )
    _check(status, workspace)
    if not collected:
        raise _failed("no worker collected the tests", workspace)
    if not done and not collected[0]:
        failed = [phase for phase in phases if phase["when"] == "collect"]  # files
        last = [each["message"].splitlines()[-1].removeprefix("E").strip() for each in failed]
        reasons = [f"{each['test']}: {why}" for each, why in zip(failed, last, strict=True)]
        hint = "; ".join(["look at -k, --shard, --sample", *reasons])
        raise UsageError("no test of the suite was selected", hint=hint)
    if lost := sorted({*collected[0]} - {phase["test"] for phase in phases}):
        raise _failed(f"{counted(len(lost), 'test')} never ran, for example {lost[0]}", workspace)
    return phases


def _argv(workspace: SuiteWorkspace, keyword: str | None, workers: int) -> list[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--tb", "short"]
    root = str(workspace.root)
    words += ["-c", str(workspace.ini), "--rootdir", root, "--confcutdir", root]
    words += ["-p", "no:cacheprovider", "-p", "xdist", "-p", "harness.suites.recorder"]
    words += ["--log-level=ERROR"]  # torch logs every step, and pytest would keep all of it
    words += ["-n", str(workers), "--dist", "worksteal", "--max-worker-restart", "4"]
    words += ["--continue-on-collection-errors"]
    words += ["--hil-workspace", str(workspace.directory)]
    if workspace.suite.marker:
        words += ["-m", workspace.suite.marker]
    if keyword is not None:
        words += ["-k", keyword]
    return [*words, str(workspace.root / workspace.suite.tests)]


def _phases(
    events: Iterable[bytes], collected: list[list[str]], done: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    """``collected`` receives the list of tests to run, once from each worker."""
    total = done
    progress("starting the suite: importing torch and collecting tests")
    for line in events:
        event = json.loads(line)
        if "collected" in event:
            collected.append(event["collected"])
            total = len(collected[0]) + done if len(collected) == 1 else total
            continue
        yield event
        if event["when"] == "teardown":
            done += 1
            progress(f"suite {done}/{total}")


def _check(status: int, workspace: SuiteWorkspace) -> None:
    if status in _PYTEST_ENDED:
        return
    lines = [s for s in workspace.log.read_text("utf-8", "replace").splitlines() if s.strip()]
    last = lines[-1] if lines else ""
    reason = next((line for line in reversed(lines) if "rror" in line), last)
    if status == _PYTEST_USAGE_ERROR:
        raise UsageError(f"pytest could not run the suite: {reason}", hint=f"see {workspace.log}")
    raise _failed(reason, workspace)


def _failed(reason: str, workspace: SuiteWorkspace) -> InfraError:
    return InfraError(f"pytest could not run the suite: {reason}", hint=f"see {workspace.log}")
