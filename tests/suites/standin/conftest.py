"""A stand-in that was installed, and small programs for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from harness.suites.standin.install import install
from harness.suites.standin.main import main
from tests.sim.gdbstub import guests

U55 = "FVP_Corstone_SSE-300_Ethos-U55"
U65 = "FVP_Corstone_SSE-300_Ethos-U65"
SSE_320 = "FVP_Corstone_SSE-320"
Guest = Callable[..., Path]
Fvp = Callable[..., "subprocess.CompletedProcess[str]"]
_SECONDS = 60
_GUEST = Path(__file__).with_name("guest.c")


@pytest.fixture(scope="session")
def standin_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fvp")
    install(directory)
    return directory


@pytest.fixture
def fvp(tmp_path: Path, shared_hil_home: str) -> Fvp:
    """Call a model as a script would; the current directory is empty. In a fork of this process,
    which need not import what a start of the command does."""
    (tmp_path / "cwd").mkdir()

    def call(*arguments: object, model: str = U55) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        output, errors = tmp_path / "stdout", tmp_path / "stderr"
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            child = os.fork()
            if not child:
                os.environ.setdefault("HIL_HOME", shared_hil_home)  # as the installed command does
                _become(model, words, tmp_path / "cwd", stdout.fileno(), stderr.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = (file.read_text("utf-8", "replace") for file in (output, errors))
        return subprocess.CompletedProcess(words, status, *said)

    return call


def _become(model: str, words: list[str], cwd: Path, stdout: int, stderr: int) -> NoReturn:
    """The command, in a process that has just been forked."""
    status = 70
    try:
        signal.alarm(_SECONDS)
        os.chdir(cwd)
        for mine, its in ((os.open(os.devnull, os.O_RDONLY), 0), (stdout, 1), (stderr, 2)):
            os.dup2(mine, its)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        status = main(model, words)
    except SystemExit as ended:  # --help
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Compile a source with some macros; ``code`` and ``cpu`` choose where and what for."""
    directory = tmp_path_factory.mktemp("guests")
    built: dict[tuple[object, ...], Path] = {}

    def make(*, source: Path = _GUEST, **how: Any) -> Path:
        key = (source, *sorted(how.items()))
        if key not in built:
            built[key] = guests.bare(directory / f"guest{len(built)}.elf", source, **how)
        return built[key]

    return make


def semihosting(cwd: Path | None = None, line: str | None = None) -> list[str]:
    words = ["-C", "cpu0.semihosting-enable=1"]
    if cwd is not None:
        words += ["-C", f"cpu0.semihosting-cwd={cwd}"]
    if line is not None:
        words += ["-C", f"cpu0.semihosting-cmd_line={line}"]
    return words
