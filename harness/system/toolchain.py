"""The programs the harness calls: where each is, its version, and how to get it.

Nothing is executed at import. A program is asked for its version once in a process.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from harness.core.errors import InfraError, ToolMissing
from harness.core.tables import read_table
from harness.system.call import CallFailed, call
from harness.system.packages import how_to_get, install, purpose_of, with_its_kind
from harness.system.settings import ROOT_VARIABLE, settings

FVP_DOWNLOADS = "https://developer.arm.com/Tools%20and%20Software/Fixed%20Virtual%20Platforms"
_QUERY_SECONDS = 30
_NUMBERS = r"\b([0-9]+(?:\.[0-9]+)+)"


@dataclass(frozen=True)
class ToolSpec:
    """A program, the Debian package that has it, and how to read its version."""

    name: str
    package: str
    required: bool = True
    version_arguments: Sequence[str] = ("--version",)
    version_pattern: str = _NUMBERS
    foreign: bool = False  # not the one in the harness's activated environment


@dataclass(frozen=True)
class Tool:
    name: str
    path: Path
    version: str  # "unknown" when the program does not say
    note: str | None = None  # why its version is unknown

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@cache
def specs() -> dict[str, ToolSpec]:
    """The programs that the harness calls, by name."""
    return {row["name"]: ToolSpec(**row) for row in read_table(__file__)}


# What an FVP calls itself, as in "Fast Models [11.27.42 (Dec  9 2024)]"; the 11.31 releases
# may say it differently. A stand-in has no version of a model.
_FVP_VERSION = r"(?:Fast Models \[|\A(?=Stand-in))([0-9][^\s\]]*|Stand-in)"


FVP_VARIABLE = "HIL_FVP_DIR"
_FVP_VARIABLES = (FVP_VARIABLE, "ARMFVP_BIN_PATH")  # the second is Zephyr's (armfvp.cmake)
_FVP_PLACES = ("/usr/local", "/opt", "/opt/arm")


@dataclass(frozen=True)
class Inspected:
    """One line of ``hil doctor``. ``version`` and ``path``: None when it is missing."""

    name: str
    version: str | None
    path: str | None
    required: bool
    how_to_get: str
    note: str | None = None  # as in Tool
    purpose: str = "run"  # as in docker/packages.txt


def inspect_tools(fvps: Mapping[str, str] | None = None) -> tuple[Inspected, ...]:
    """Every tool the harness may call. ``fvps``: executable and package of FVPs to look for."""
    found = [
        _inspected(find(s.name), s.name, s.required, _install(s), purpose_of(s.package))
        for s in specs().values()
    ]
    for name, package in (fvps or {}).items():
        found.append(_inspected(find_fvp(name), name, False, _fvp_hint(package), "run"))
    return tuple(found)


def _inspected(tool: Tool | None, name: str, required: bool, how: str, purpose: str) -> Inspected:
    version, path, note = (tool.version, str(tool.path), tool.note) if tool else (None, None, None)
    return Inspected(name, version, path, required, how, note, purpose)


def _install(spec: ToolSpec) -> str:
    return how_to_get(*with_its_kind(spec.package))


def _fvp_hint(package: str) -> str:
    if platform.machine() in ("aarch64", "arm64"):
        package = package.replace("_Linux64.", "_Linux64_armv8l.")
    return (
        f"get {package} from {FVP_DOWNLOADS}, accept Arm's licence, and set HIL_FVP_DIR "
        "to the directory it was installed in"
    )


def _spec(name: str) -> ToolSpec:
    """The entry of a program that a target's file names, also by its path or an unlisted name."""
    return specs().get(Path(name).name) or ToolSpec(name, "", required=False)


def find(name: str) -> Tool | None:
    """A tool on PATH or at a path, or None."""
    spec = _spec(name)
    found = _which(name, spec)
    if found is None:
        return None
    path = Path(found).absolute()
    version, note = _version(
        path, tuple(spec.version_arguments), spec.version_pattern, _stamp(path)
    )
    return Tool(name, path, version, note)


def _which(name: str, spec: ToolSpec) -> str | None:
    """Where PATH has it: the same one however hil was started."""
    own = Path(sys.executable).parent
    others = [f for f in os.get_exec_path() if not spec.foreign or Path(f).absolute() != own]
    return shutil.which(name, path=os.pathsep.join(others)) or shutil.which(name)


def require(name: str) -> Tool:
    """A tool on PATH. Raises ToolMissing with the package that has it."""
    locate(name)
    tool = find(name)
    assert tool is not None
    return tool


def locate(name: str) -> Path:
    """The path of a tool on PATH, without its version; its package is installed where that is
    allowed. Raises ToolMissing as ``require`` does."""
    spec = _spec(name)
    found = _which(name, spec)
    if found is None and spec.package and install(spec.package):
        found = _which(name, spec)
    if found is None:
        own = "the target's file names it; install it, or name another program there"
        raise ToolMissing(
            f"{name} is not installed (not found on PATH)",
            hint=_install(spec) if spec.package else own,
            tool=name,
            package=spec.package,
        )
    return Path(found).absolute()


def find_fvp(
    executable: str, environ: Mapping[str, str] = os.environ, checkout: Path | None = None
) -> Tool | None:
    """An installed FVP: where a variable says (``_FVP_VARIABLES``), where ExecuTorch's setup puts
    it in ``checkout`` or in the named one, on PATH, or where Arm's installers put it."""
    words = (environ.get(name, "") for name in _FVP_VARIABLES)
    named = [Path(item) for word in words for item in word.split(os.pathsep) if item]
    for root in (checkout, environ.get(ROOT_VARIABLE), settings(environ=environ).executorch):
        named += sorted(Path(root).glob("examples/arm/arm-scratch/FVP-*")) if root else []
    homes = [environ["HOME"]] if environ.get("HOME") else []
    places = [Path(place) for place in (*homes, *_FVP_PLACES)]
    usual = [path for place in places for path in sorted(place.glob("[Ff][Vv][Pp]*"))]
    on_path = shutil.which(executable, path=environ.get("PATH"))
    candidates = (
        *_in_directories(executable, named),
        *([Path(on_path)] if on_path else []),
        *_in_directories(executable, usual),
    )
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            version, note = _version(path, ("--version",), _FVP_VERSION, _stamp(path))
            return Tool(executable, path, version, note)
    return None


def _in_directories(executable: str, directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        for pattern in ("", "bin/", "models/*/", "*/models/*/"):
            yield from sorted(directory.glob(pattern + executable))


def require_fvp(executable: str, package: str, environ: Mapping[str, str] = os.environ) -> Tool:
    tool = find_fvp(executable, environ)
    if tool is None:
        variables = ", ".join(f"${name}" for name in _FVP_VARIABLES)
        places = ", ".join(f"{place}/FVP*" for place in ("~", *_FVP_PLACES))
        raise ToolMissing(
            f"{executable} is not installed (looked in {variables}, in examples/arm/arm-scratch of "
            f"a named checkout of ExecuTorch, on PATH, in {places})",
            hint=_fvp_hint(package),
            tool=executable,
            package=package,
        )
    return tool


def toolchain_id(toolchain: str) -> str:
    """Compiler and C library by name and version: "arm-none-eabi-gcc 12.2.1 newlib 3.3.0"."""
    if toolchain == "gcc":
        return str(require("g++"))
    if toolchain == "aarch64-linux-gnu-gcc":
        return str(require("aarch64-linux-gnu-g++"))
    compiler = require("arm-none-eabi-gcc")
    require("arm-none-eabi-g++")
    return f"{compiler} newlib {_newlib_version(compiler.path)}"


def _newlib_version(compiler: Path) -> str:
    arguments = ("-E", "-dM", "-xc", "-include", "_newlib_version.h", os.devnull)
    version, _ = _version(compiler, arguments, r'_NEWLIB_VERSION "([^"]+)"', _stamp(compiler))
    if version == "unknown":
        raise ToolMissing(
            f"{compiler.name} finds no newlib (its C library)",
            hint=how_to_get("libnewlib-arm-none-eabi", "libstdc++-arm-none-eabi-dev"),
            tool="newlib",
            package="libnewlib-arm-none-eabi",
        )
    return version


def require_libstdcxx() -> None:
    """libstdc++ of the Cortex-M compiler as a library, which ExecuTorch's own runner links; the
    bundled runner needs its headers only. Raises ToolMissing."""
    compiler = locate("arm-none-eabi-g++")
    package = "libstdc++-arm-none-eabi-newlib"
    if _has_libstdcxx(compiler) or (install(package) and _has_libstdcxx(compiler)):
        return
    raise ToolMissing(
        f"{compiler.name} has no libstdc++.a, which ExecuTorch's own runner links",
        hint=how_to_get(package),
        tool="libstdc++",
        package=package,
    )


def _has_libstdcxx(compiler: Path) -> bool:
    answer, _ = _run(compiler, ("-print-file-name=libstdc++.a",))
    return Path(answer.strip()).is_absolute()  # GCC answers with the bare name if there is none


def version_of(program: Path, arguments: tuple[str, ...] = ("--version",)) -> str:
    """The version of a program that is in no list; "unknown" when it does not say."""
    return _version(program, arguments, _NUMBERS, _stamp(program))[0]


@lru_cache(maxsize=128)
def _version(
    program: Path, arguments: tuple[str, ...], pattern: str, _stamp: str
) -> tuple[str, str | None]:
    """The match of ``pattern`` in the output of ``program arguments``, else "unknown"; and what
    went wrong. ``_stamp``: of the program, which another one may replace."""
    output, trouble = _run(program, arguments)
    match = re.search(pattern, output)
    return ("unknown", trouble) if match is None else (match[1], None)


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _run(program: Path, arguments: tuple[str, ...]) -> tuple[str, str | None]:
    """The output, and why there is none. Raises InfraError when it cannot be started."""
    try:
        return call([program, *arguments], _QUERY_SECONDS), None
    except CallFailed as error:
        if error.output is None:
            return "", f"it did not print its version within {_QUERY_SECONDS:g} s"
        return error.output, None
    except OSError as error:
        raise InfraError(f"{program} cannot be started: {error.strerror}", path=program) from error
