"""cmake/schema.cmake: which flatc makes the headers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.system.paths import executorch_package
from tools.clone import project_root


@pytest.fixture
def another_flatc(tmp_path: Path) -> Path:
    """A folder with a flatc of a version that fits no headers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "flatc").write_text("#!/bin/sh\necho flatc version 99.0.0\n")
    (folder / "flatc").chmod(0o755)
    return folder


def configure(build: Path, *options: str, path: str) -> subprocess.CompletedProcess[str]:
    schema = f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}"
    source = project_root() / "targets" / "runner"
    command = ["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", schema, *options]
    return subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


def test_a_flatc_of_another_version_in_front_is_passed_over(
    tmp_path: Path, another_flatc: Path
) -> None:
    """Protects builds from an activated .venv, whose bin has the flatc of ExecuTorch's wheel."""
    done = configure(
        tmp_path / "build", "-DHIL_PORT=host", path=f"{another_flatc}:{os.environ['PATH']}"
    )
    assert done.returncode == 0, done.stderr


def test_a_flatc_that_does_not_fit_is_named(tmp_path: Path, another_flatc: Path) -> None:
    done = configure(
        tmp_path / "build",
        "-DHIL_PORT=host",
        f"-DHIL_FLATC={another_flatc / 'flatc'}",
        path=os.environ["PATH"],
    )
    assert done.returncode != 0
    assert "flatc is 99.0.0 but flatbuffers' headers are" in " ".join(done.stderr.split())
