"""One command of a build: bounded in time, with a log of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.errors import InfraError
from harness.firmware import log as build_log
from harness.system import toolchain
from harness.system.process import Bounds, Stop, run
from harness.system.progress import Progress

_BUILD_SECONDS = 1800.0
_SILENT_SECONDS = 300.0
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "CCACHE_DIR")  # nothing that could change the result


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

    tied = (str(toolchain.locate("setsid")), str(toolchain.locate("setpriv")))
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
