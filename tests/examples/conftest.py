"""The repository of `examples` where a user has it: in a git repository of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.clone import project_root

EXAMPLES = project_root() / "examples"
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user") / "my-models"
    state = shutil.ignore_patterns(".hil", "__pycache__", ".pytest_cache")
    shutil.copytree(EXAMPLES / "repository", folder, ignore=state)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
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
