"""A stand-in that was installed, and small programs for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.suites.standin.install import install
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
def fvp(standin_directory: Path, tmp_path: Path) -> Fvp:
    """Call a model as a script would; the current directory is empty."""
    (tmp_path / "cwd").mkdir()

    def call(*arguments: object, model: str = U55) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [standin_directory / model, *map(str, arguments)],
            cwd=tmp_path / "cwd",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )

    return call


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
