"""Protects the package as users get it: whole, from the wheel, in a directory of no repository.

The wheel is built from these sources and unpacked into an empty virtual environment, which has
this one's packages for its dependencies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.clone import project_root


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    argv = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(folder),
        str(project_root()),
    ]
    subprocess.run(argv, check=True, capture_output=True, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's folder of programs."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    argv = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "-q",
        str(wheel),
    ]
    subprocess.run(argv, check=True, capture_output=True, cwd=folder)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


def call(
    installed: Path, *words: str, cwd: Path, state: str | None = None
) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HIL_HOME")}
    environ["PATH"] = f"{installed}{os.pathsep}{environ['PATH']}"
    if state is not None:
        environ["HIL_HOME"] = state
    return subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True)


def test_the_first_command(installed: Path, tmp_path: Path, shared_hil_home: str) -> None:
    words = ("hil", "run", "corstone-300-m55", "add", "--simulator", "qemu", "--json")
    done = call(installed, *words, cwd=tmp_path, state=shared_hil_home)
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert case["verdict"] == "PASS"
    assert not any("no reference run accepted" in note for note in case["notes"])


def test_the_plugin(installed: Path, tmp_path: Path, shared_hil_home: str) -> None:
    """In a repository with settings: the user's reference is written there, and then held."""
    (tmp_path / "hil.toml").touch()
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n"
        '@pytest.mark.hil_cases(targets=["host"], models=["add"])\n'
        "def test_it(hil_run, hil_reference): assert hil_reference is not None\n"
    )
    words = ("hil", "accept", "host/add", "--reason", "first")
    assert call(installed, *words, cwd=tmp_path, state=shared_hil_home).returncode == 0
    assert (tmp_path / "references" / "host" / "add.json").is_file()
    after = call(installed, "python", "-m", "pytest", "-q", cwd=tmp_path, state=shared_hil_home)
    assert after.returncode == 0, after.stdout


def test_a_repository_to_begin_with(installed: Path, tmp_path: Path) -> None:
    """The example's files come with the package."""
    assert call(installed, "hil", "init", "mine", cwd=tmp_path).returncode == 0
    assert "my-board" in call(installed, "hil", "targets", cwd=tmp_path / "mine").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hil", "test"), "works in a clone only: ./hil test"),
        (("hil", "bench", "npu"), "works in a clone only: ./hil bench"),
        (("hil", "accept", "host/add", "--reason", "x"), "make an empty hil.toml"),
    ],
)
def test_what_needs_a_clone_or_a_repository(
    installed: Path, tmp_path: Path, words: Sequence[str], said: str
) -> None:
    done = call(installed, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheel_is_what_package_indexes_want(wheel: Path) -> None:
    for argv in (["twine", "check", "--strict"], ["check_wheel_contents"]):
        words = [sys.executable, "-m", *argv, str(wheel)]
        done = subprocess.run(words, cwd=project_root(), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
