"""Finds the Zephyr workspace that a runner is built in, its version and compiler, and checks that
it has the board, all before anything is exported. West reports a missing variant of a board.

``ZEPHYR_TOOLCHAIN_VARIANT`` is respected. Without it the compiler is the Zephyr SDK if there is
one, else GNU's toolchain for Arm on PATH, as Debian has it (``gnuarmemb``).
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.core.errors import BuildError, ToolMissing, UsageError
from harness.system import toolchain
from harness.system.call import CallFailed, call
from harness.system.files import text_of
from harness.system.git import identity
from harness.system.packages import how_to_get

_SECONDS = 120
_HOW = "make one with `hil zephyr init WORKSPACE`, then `export ZEPHYR_BASE=WORKSPACE/zephyr`"
_FILE = "board.yml"  # of every board since Zephyr 3.7 (hardware model v2)
# A module's folders of boards (Zephyr, doc/develop/modules.rst: build settings).
_ROOT = re.compile(r"^\s*board_root:\s*(\S+)", re.MULTILINE)
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


@dataclass(frozen=True)
class Compiler:
    """``environment``: the variables that select it. ``path``: the C compiler; None for a variant
    that the harness does not know."""

    name: str  # with its version
    environment: tuple[tuple[str, str], ...]
    path: Path | None = None

    def require(self, cpu: str) -> None:
        """Raises BuildError if it does not know the CPU. An unknown variant is not checked."""
        if self.path is not None and not _takes(self.path, f"-mcpu={cpu}"):
            raise BuildError(
                f"{self.name} cannot compile for the {cpu}: it does not know that CPU",
                hint="a newer compiler does (the Cortex-M85: GCC 13, Zephyr SDK 0.17): set "
                f"{SDK_DIR}, or {GNU_DIR} with {VARIANT}={GNU}",
                path=self.path,
                cpu=cpu,
                compiler=self.name,
            )

    @property
    def has_picolibc(self) -> bool:
        """Whether it is GNU's and has picolibc, as Debian's can; then Zephyr does not know it."""
        gnu = dict(self.environment).get(VARIANT) == GNU
        return gnu and self.path is not None and _takes(self.path, "--specs=picolibc.specs")


def find_compiler(environ: Mapping[str, str] = os.environ) -> Compiler:
    """Raises ToolMissing without a compiler, UsageError if the named one does not exist."""
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
        raise UsageError(f"{VARIANT} is {SDK}, and there is no Zephyr SDK", hint=_get_a_compiler())
    for folder in environ.get("PATH", "").split(os.pathsep):
        # a folder of links to ccache is not a toolchain
        if Path(folder).name == "bin" and (Path(folder) / _GNU_COMPILER).is_file():
            return _gnu(Path(folder).parent)
    raise ToolMissing("there is no compiler for Zephyr", hint=_get_a_compiler(), tool=_GNU_COMPILER)


@cache
def _takes(compiler: Path, flag: str) -> bool:
    try:
        call((compiler, flag, "-E", "-xc", os.devnull, "-o", os.devnull), _SECONDS)
    except CallFailed:
        return False
    return True


def _gnu(folder: Path) -> Compiler:
    path = folder / "bin" / _GNU_COMPILER
    if not path.is_file():
        raise UsageError(
            f"{GNU_DIR} is {folder}, which has no bin/{_GNU_COMPILER}", hint=_get_a_compiler()
        )
    version = toolchain.version_of(path, ("-dumpfullversion",))
    return Compiler(f"{_GNU_COMPILER} {version}", ((VARIANT, GNU), (GNU_DIR, str(folder))), path)


def _sdk(environ: Mapping[str, str]) -> Compiler | None:
    """The named SDK, or else the newest one that is installed."""
    named = environ.get(SDK_DIR)
    found = [Path(named)] if named else [*_installed(environ)]
    compilers = [(folder, folder / name) for folder in found for name in _SDK_COMPILERS]
    sdks = [(folder, path) for folder, path in compilers if path.is_file()]
    if not sdks:
        if named:
            raise UsageError(
                f"{SDK_DIR} is {named}, which is not a Zephyr SDK for Arm", hint=_get_a_compiler()
            )
        return None
    folder, path = max(sdks, key=lambda sdk: _version(sdk[0]))
    version = ".".join(map(str, _version(folder)))
    return Compiler(f"Zephyr SDK {version}", ((VARIANT, SDK), (SDK_DIR, str(folder))), path)


def _installed(environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME", "/nowhere")
    for place in _PLACES:
        yield from sorted(Path(place.replace("~", home)).glob(_FOLDER))
    for entry in sorted(Path(home, _REGISTRY).glob("*")):
        yield Path(entry.read_text("utf-8", "replace").strip()).parent  # of its folder cmake/


def _version(sdk: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text_of(sdk / "sdk_version"))[:3]))


def _get_a_compiler() -> str:
    gnu = how_to_get("gcc-arm-none-eabi", "libstdc++-arm-none-eabi-dev")
    return (
        "install the Zephyr SDK (`west sdk install` in the workspace), or GNU's toolchain for Arm: "
        + gnu
    )


@dataclass(frozen=True)
class Workspace:
    """A Zephyr workspace and the board to build for. ``identity`` changes when Zephyr does."""

    west: Path
    base: Path
    board: str
    identity: str
    compiler: Compiler
    version: str  # of Zephyr

    def key(self) -> list[object]:
        return [self.board, self.identity, self.compiler.name, self.compiler.environment]

    @property
    def toolchain_id(self) -> str:
        """Accepted sizes are valid for one version of Zephyr and of the compiler."""
        return f"Zephyr {self.version} {self.compiler.name}"

    @property
    def environment(self) -> dict[str, str]:
        return {"ZEPHYR_BASE": str(self.base), **dict(self.compiler.environment)}


def find_workspace(board: str, environ: Mapping[str, str] = os.environ) -> Workspace:
    """The workspace that ``$ZEPHYR_BASE`` names; does not check the board.

    Reads every project of the workspace, linked checkouts included: an edit in any of them needs a
    new build. Raises UsageError without a workspace, ToolMissing without west or a compiler; their
    hints say how to get it.
    """
    base, west = find_zephyr(environ), find_west(environ)
    others = sorted(path for path in projects(west, base).values() if path.is_dir())
    content = "\n".join(map(identity, (base, *others)))
    return Workspace(west, base, board, content, find_compiler(environ), zephyr_version(base))


def require_workspace(board: str, cpu: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raises what ``find_workspace`` does, UsageError for an unknown board and BuildError for an
    unknown CPU. Does not read Zephyr's sources."""
    base, west = find_zephyr(environ), find_west(environ)
    if not any(_boards(base, name_of(board))) and not any(
        any(_boards(project / root, name_of(board)))
        for project in projects(west, base).values()
        for root in _ROOT.findall(text_of(project / "zephyr" / "module.yml"))
    ):
        version, there = zephyr_version(base), {file.parent.name for file in _boards(base, "*")}
        names = difflib.get_close_matches(name_of(board), sorted(there), 3, 0.7)
        shown = f" (there are {', '.join(names)})" if names else ""
        raise UsageError(
            f"Zephyr {version} has no board {name_of(board)}{shown}, and the target is built for "
            f"{board}",
            hint="take a Zephyr that has it: `hil zephyr init DIR --zephyr VERSION` makes a "
            "workspace; `west boards` lists what one has",
            path=base / "boards",
            board=board,
            version=version,
            likely=names,
        )
    find_compiler(environ).require(cpu)


def find_zephyr(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that ``$ZEPHYR_BASE`` names. Raises UsageError if there is no Zephyr."""
    folder = environ.get("ZEPHYR_BASE")
    if not folder:
        raise UsageError(
            "this target is built in a Zephyr workspace, and ZEPHYR_BASE is not set", hint=_HOW
        )
    base = Path(folder).absolute()
    if not is_zephyr(base):
        raise UsageError(f"ZEPHYR_BASE is {folder}, which is not Zephyr", hint=_HOW, path=folder)
    return base


def is_zephyr(base: Path) -> bool:
    return (base / "share" / "zephyr-package" / "cmake" / "ZephyrConfig.cmake").is_file()


def zephyr_version(base: Path) -> str:
    """From Zephyr's file VERSION: "4.1.0", "4.2.0-rc1"."""
    said = dict(re.findall(r"^(\w+) *= *(\S*)", text_of(base / "VERSION"), re.MULTILINE))
    if not said:
        return "unknown"
    numbers = (said.get(name, "?") for name in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"))
    extra = said.get("EXTRAVERSION")
    return ".".join(numbers) + (f"-{extra}" if extra else "")


def find_west(environ: Mapping[str, str]) -> Path:
    """West in PATH (Zephyr's documentation has its users activate an environment), or next to the
    harness's Python."""
    beside = Path(sys.executable).with_name("west")
    found = shutil.which("west", path=environ.get("PATH")) or (beside if beside.is_file() else None)
    if found is None:
        raise ToolMissing("west is not installed", hint="pip install west", tool="west")
    return Path(found)


def projects(west: Path, base: Path) -> dict[str, Path]:
    """The other repositories of the workspace by name, fetched or not. Follows links. Raises
    UsageError if west does not know the workspace."""
    words = (west, "list", "--format", "{name}\t{abspath}")
    try:
        said = call(words, _SECONDS, cwd=base, environment={**os.environ, "ZEPHYR_BASE": str(base)})
    except CallFailed as error:
        raise UsageError(
            f"west does not know the workspace of {base}: {error}", hint=_HOW, path=base
        ) from error
    listed = (line.split("\t", 1) for line in said.splitlines() if "\t" in line)
    found = {name: Path(path).resolve() for name, path in listed}
    return {name: path for name, path in found.items() if path != base.resolve()}


def name_of(board: str) -> str:
    """Without qualifiers and revision: "mps3" of "mps3/corstone300/an547"."""
    return re.split("[/@]", board, maxsplit=1)[0]


def _boards(root: Path, name: str) -> Iterator[Path]:
    for vendors in ("", "*/"):
        yield from (root / "boards").glob(f"{vendors}{name}/{_FILE}")
