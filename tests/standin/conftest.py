"""A stand-in that was installed, and small programs for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.standin.install import install

U55 = "FVP_Corstone_SSE-300_Ethos-U55"
U65 = "FVP_Corstone_SSE-300_Ethos-U65"
SSE_320 = "FVP_Corstone_SSE-320"
Guest = Callable[..., Path]
Fvp = Callable[..., "subprocess.CompletedProcess[str]"]
_SECONDS = 60


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

    def make(
        *, source: str = "guest.c", code: int = 0x10000000, data: int = 0x30000000,
        cpu: str = "cortex-m55", **macros: object,
    ) -> Path:  # fmt: skip
        key = (source, code, data, cpu, *sorted(macros.items()))
        if key not in built:
            elf = directory / f"guest{len(built)}.elf"
            subprocess.run(
                [
                    *("arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", "-O1", "-nostdlib"),
                    *("-ffreestanding", "-Wl,--entry=reset", "-Wl,--build-id=none"),
                    *(f"-Wl,--section-start=.vectors=0x{code:x}", f"-Wl,-Ttext=0x{code + 256:x}"),
                    *(f"-Wl,--section-start=.rodata=0x{code + 0x4000:x}", f"-Wl,-Tbss=0x{data:x}"),
                    *("-Wl,-z,max-page-size=256",),
                    *(f"-D{name}={value}" for name, value in macros.items()),
                    *(str(Path(__file__).with_name(source)), "-o", str(elf)),
                ],
                check=True,
            )
            built[key] = elf
        return built[key]

    return make


def semihosting(cwd: Path | None = None, line: str | None = None) -> list[str]:
    words = ["-C", "cpu0.semihosting-enable=1"]
    if cwd is not None:
        words += ["-C", f"cpu0.semihosting-cwd={cwd}"]
    if line is not None:
        words += ["-C", f"cpu0.semihosting-cmd_line={line}"]
    return words
