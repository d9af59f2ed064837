"""Which compiler Zephyr's build is given.

A user's ``ZEPHYR_TOOLCHAIN_VARIANT`` is taken as it is. Where there is none, it is the Zephyr SDK
where one is found, and else GNU's toolchain for Arm on PATH, as Debian has it (``gnuarmemb``).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.core.errors import BuildError, ToolMissing, UsageError
from harness.system import toolchain
from harness.system.packages import how_to_get

VARIANT, SDK_DIR, GNU_DIR = (
    "ZEPHYR_TOOLCHAIN_VARIANT",
    "ZEPHYR_SDK_INSTALL_DIR",
    "GNUARMEMB_TOOLCHAIN_PATH",
)
SDK, GNU = "zephyr", "gnuarmemb"
_GNU_COMPILER = "arm-none-eabi-gcc"
# Zephyr's cmake/modules/FindZephyr-sdk.cmake; an SDK's folder begins with its name.
_PLACES = ("/usr", "/usr/local", "/opt", "~", "~/.local", "~/.local/opt", "~/bin")
_FOLDER = "zephyr-sdk-*"
_REGISTRY = ".cmake/packages/Zephyr-sdk"  # CMake's user package registry, filled by setup.sh
# Up to 0.17, and since 1.0.
_SDK_COMPILERS = (
    "arm-zephyr-eabi/bin/arm-zephyr-eabi-gcc",
    "gnu/arm-zephyr-eabi/bin/arm-zephyr-eabi-gcc",
)


class CpuUnknown(BuildError):
    """The compiler has no such CPU."""

    def __init__(self, compiler: Compiler, cpu: str) -> None:
        self.cpu = cpu
        self.compiler = compiler.name
        super().__init__(
            f"{compiler.name} cannot compile for the {cpu}: it does not know that CPU",
            hint="a newer compiler does (the Cortex-M85: GCC 13, Zephyr SDK 0.17): set "
            f"{SDK_DIR}, or {GNU_DIR} with {VARIANT}={GNU}",
            path=compiler.path,
        )


@dataclass(frozen=True)
class Compiler:
    """``environment``: what tells Zephyr to take it. ``path``: of the C compiler, where this
    variant is known here."""

    name: str  # with its version
    environment: tuple[tuple[str, str], ...]
    path: Path | None = None

    def require(self, cpu: str) -> None:
        """Raises CpuUnknown. A compiler that is not known here is believed."""
        if self.path is not None and not _knows(self.path, cpu):
            raise CpuUnknown(self, cpu)


def find_compiler(environ: Mapping[str, str] = os.environ) -> Compiler:
    """Raises ToolMissing when there is none, UsageError for one that is named and not there."""
    variant = environ.get(VARIANT)
    if variant and variant not in (SDK, GNU):
        own = ((VARIANT, variant), ("CROSS_COMPILE", environ.get("CROSS_COMPILE", "")))
        return Compiler(variant, tuple((name, value) for name, value in own if value))
    if variant == GNU and environ.get(GNU_DIR):
        return _gnu(Path(environ[GNU_DIR]))
    sdk = None if variant == GNU else _sdk(environ)
    if sdk is not None:
        return sdk
    if variant == SDK:
        raise UsageError(f"{VARIANT} is {SDK}, and there is no Zephyr SDK", hint=_how())
    for folder in environ.get("PATH", "").split(os.pathsep):
        # a folder of links to ccache is no toolchain
        if Path(folder).name == "bin" and (Path(folder) / _GNU_COMPILER).is_file():
            return _gnu(Path(folder).parent)
    raise ToolMissing("there is no compiler for Zephyr", hint=_how(), tool=_GNU_COMPILER)


@cache
def _knows(compiler: Path, cpu: str) -> bool:
    argv = [str(compiler), f"-mcpu={cpu}", "-E", "-xc", os.devnull, "-o", os.devnull]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _gnu(folder: Path) -> Compiler:
    path = folder / "bin" / _GNU_COMPILER
    if not path.is_file():
        raise UsageError(f"{GNU_DIR} is {folder}, which has no bin/{_GNU_COMPILER}", hint=_how())
    version = toolchain.version_of(path, ("-dumpfullversion",))
    return Compiler(f"{_GNU_COMPILER} {version}", ((VARIANT, GNU), (GNU_DIR, str(folder))), path)


def _sdk(environ: Mapping[str, str]) -> Compiler | None:
    """The newest of those installed, or the one that is named."""
    named = environ.get(SDK_DIR)
    found = [Path(named)] if named else [*_installed(environ)]
    sdks = [(folder, path) for folder in found for path in _compilers(folder)]
    if not sdks:
        if named:
            raise UsageError(f"{SDK_DIR} is {named}, which is no Zephyr SDK for Arm", hint=_how())
        return None
    folder, path = max(sdks, key=lambda sdk: _version(sdk[0]))
    version = ".".join(map(str, _version(folder)))
    return Compiler(f"Zephyr SDK {version}", ((VARIANT, SDK), (SDK_DIR, str(folder))), path)


def _compilers(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _SDK_COMPILERS if (folder / name).is_file())


def _installed(environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME", "/nowhere")
    for place in _PLACES:
        yield from sorted(Path(place.replace("~", home)).glob(_FOLDER))
    for entry in sorted(Path(home, _REGISTRY).glob("*")):
        yield Path(entry.read_text("utf-8", "replace").strip()).parent  # of its folder cmake/


def _version(sdk: Path) -> tuple[int, ...]:
    try:
        said = (sdk / "sdk_version").read_text()
    except OSError:
        return ()
    return tuple(map(int, re.findall(r"\d+", said)[:3]))


def _how() -> str:
    gnu = how_to_get("gcc-arm-none-eabi", "libstdc++-arm-none-eabi-dev")
    return (
        "install the Zephyr SDK (`west sdk install` in the workspace), or GNU's toolchain for Arm: "
        + gnu
    )
