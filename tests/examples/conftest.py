"""The repository of `examples` where a user has it: in a git repository of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.export.process import ExportProcess
from harness.run.subjects import export_cases
from tools.clone import project_root

EXAMPLES = project_root() / "examples"
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory, hil_export_process: ExportProcess) -> Path:
    """Its programs are in the session's cache: each process that exports imports torch."""
    folder = tmp_path_factory.mktemp("user") / "my-models"
    state = shutil.ignore_patterns(".hil", "__pycache__", ".pytest_cache")
    shutil.copytree(EXAMPLES / "repository", folder, ignore=state)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    board = load_target(str(folder / "boards" / "my-board.yaml"))
    cases = [Case(board.name, str(model)) for model in (folder / "models").glob("*.py")]
    export_cases(cases, {board.name: board}, process=hil_export_process)
    return folder


@pytest.fixture(scope="session")
def call(shared_hil_home: str) -> Call:
    """``call(argv, cwd)`` with this environment's programs on PATH and the session's state."""

    def run(argv: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        environ = {
            k: v for k, v in os.environ.items() if k not in ("HIL_PROJECT", "HIL_REFERENCES")
        }
        environ["HIL_HOME"] = shared_hil_home
        environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
        return subprocess.run(
            argv, cwd=cwd, env={**environ, **environment}, capture_output=True, text=True
        )

    return run
