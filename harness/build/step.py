"""What every build does: one process builds, each command is bounded and keeps its log."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from harness.build import log as build_log
from harness.errors import InfraError
from harness.system import toolchain
from harness.system.process import Bounds, Stop, run
from harness.system.progress import Progress

_BUILD_SECONDS = 1800.0
_SILENT_SECONDS = 300.0
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "CCACHE_DIR")  # nothing that could change the result


def acquire(path: Path, on_wait: Callable[[], None]) -> FileLock:
    """The lock at ``path``; ``on_wait`` is called when somebody else has it. InfraError when that
    takes too long."""
    lock = FileLock(str(path))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        on_wait()
        try:
            lock.acquire(timeout=_BUILD_SECONDS)
        except Timeout as error:
            raise InfraError(
                f"another process has been building for {_BUILD_SECONDS:.0f} s", path=path
            ) from error
    return lock


def run_step(
    step: str,
    argv: Sequence[str],
    directory: Path,
    target: str,
    progress: Progress,
    environment: Mapping[str, str] | None = None,
    places: Mapping[str, str] | None = None,
) -> None:
    """One command of a build, its output in ``<step>.log``, bounded in time. ``places``: folders
    as the build names them, and as an error's message should."""
    log = directory / f"{step}.log"

    def watch(data: bytes) -> None:
        if steps := re.findall(rb"^\[(\d+/\d+)\] ", data, re.MULTILINE):
            progress(f"{target}: building the runner {steps[-1].decode()}")

    tied = (str(toolchain.require("setsid").path), str(toolchain.require("setpriv").path))
    ended = run(
        [*tied, "--pdeathsig", "KILL", "--", *argv],
        cwd=directory,
        environment={
            **{name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            **(environment or {}),
            "LC_ALL": "C.UTF-8",
        },
        console=log,
        bounds=Bounds(_BUILD_SECONDS, _SILENT_SECONDS),
        on_output=watch,
    )
    if ended.stop is not Stop.EXITED:
        raise InfraError(f"the {step} step was stopped: {ended.stop}", path=log)
    if ended.status != 0:
        text = log.read_text("utf-8", "replace")
        for built, shown in (places or {}).items():
            text = text.replace(f"{built}/", f"{shown}/")
        raise build_log.diagnose(text, build_log.FailedStep(step, log, target, ended.status))


def clear(directory: Path) -> None:
    """Remove what a killed build left. Renamed first: compilers it left behind may still run,
    and write to where their current directory is then. What they write while it is removed stays
    until the next time."""
    if directory.exists():
        directory.rename(directory.with_name(f"{directory.name}.{uuid.uuid4().hex[:8]}.trash"))
    for trash in directory.parent.glob(f"{directory.name}.*.trash"):
        shutil.rmtree(trash, ignore_errors=True)
