"""Building the runner in a user's Zephyr workspace, with `west build`.

Exercised against a small workspace of our own (tests/link/zephyr_standin); never run against
Zephyr itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BuildError, ToolMissing, UsageError
from harness.system.files import sha256_of

# What Zephyr's build takes from the environment to find itself and its toolchain (Zephyr's
# "Environment Variables" and "Toolchains" pages).
VARIABLES = ("ZEPHYR_BASE", "ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR",
             "GNUARMEMB_TOOLCHAIN_PATH", "CROSS_COMPILE")  # fmt: skip
_SECONDS = 120
_HOW = (
    "make one with `west init -m https://github.com/zephyrproject-rtos/zephyr WORKSPACE`, "
    "`cd WORKSPACE`, `west update`, then `export ZEPHYR_BASE=WORKSPACE/zephyr`"
)


@dataclass(frozen=True)
class Workspace:
    """Where to build, with what, and for which board. ``identity`` changes when Zephyr does."""

    west: Path
    base: Path
    board: str
    identity: str
    environment: tuple[tuple[str, str], ...]

    def key(self) -> list[object]:
        return [self.board, self.identity, self.environment]


def find_workspace(
    board: str, environ: Mapping[str, str] = os.environ, *, dev_mode: bool = False
) -> Workspace:
    """The workspace that ``$ZEPHYR_BASE`` names. Raises UsageError without one, ToolMissing
    without west; both say how to get it.

    Every project but Zephyr is taken to be what the manifest pins. In development mode
    (``hil run --dev-mode``) each of them is looked at, so that an edit in a checkout that is
    linked into the workspace is another build.
    """
    said = environ.get("ZEPHYR_BASE")
    if not said:
        raise UsageError(
            "this target is built in a Zephyr workspace, and ZEPHYR_BASE is not set", hint=_HOW
        )
    base = Path(said).absolute()
    if not (base / "share" / "zephyr-package" / "cmake" / "ZephyrConfig.cmake").is_file():
        raise UsageError(f"ZEPHYR_BASE is {said}, which is not Zephyr", hint=_HOW, path=said)
    west = _west(environ)
    identity = _revision(base)
    if dev_mode:
        identity = "\n".join([identity, *map(_revision, _projects(west, base))])
    return Workspace(
        west,
        base,
        board,
        identity,
        tuple((name, environ[name]) for name in VARIABLES if name in environ),
    )


def _west(environ: Mapping[str, str]) -> Path:
    beside = Path(sys.executable).with_name("west")
    found = shutil.which("west", path=environ.get("PATH")) or (beside if beside.is_file() else None)
    if found is None:
        raise ToolMissing("west is not installed", hint="pip install west", tool="west")
    return Path(found)


def _projects(west: Path, base: Path) -> list[Path]:
    """Every other repository of the workspace, links followed."""
    done = subprocess.run([west, "list", "--format", "{abspath}"], cwd=base, capture_output=True,
                          text=True, check=False, timeout=_SECONDS)  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise UsageError(
            f"west does not know the workspace of {base}: {last}", hint=_HOW, path=base
        )
    found = {Path(line).resolve() for line in done.stdout.splitlines()}
    return sorted(path for path in found - {base.resolve()} if path.is_dir())


def _revision(repository: Path) -> str:
    """What is checked out, edits to its files and new files included."""
    git = shutil.which("git")
    if git is None or not (repository / ".git").exists():
        version = repository / "VERSION"
        return version.read_text() if version.is_file() else str(repository)
    digest = hashlib.sha256()
    for words in (["rev-parse", "HEAD"], ["diff", "HEAD", "--no-ext-diff", "--binary"]):
        digest.update(_git(git, repository, words))
    for name in _git(git, repository, ["ls-files", "--others", "--exclude-standard", "-z"]).split(
        b"\0"
    ):
        file = repository / os.fsdecode(name)
        if name and file.is_file():
            digest.update(name + b"\0" + bytes.fromhex(sha256_of(file)))
    return digest.hexdigest()


def _git(git: str, repository: Path, words: Sequence[str]) -> bytes:
    return subprocess.run([git, "-C", str(repository), *words], capture_output=True, check=False,
                          timeout=_SECONDS).stdout  # fmt: skip


def west_command(
    workspace: Workspace, sources: Path, tree: Path, options: Mapping[str, str]
) -> tuple[str, ...]:
    """`west build` of our sample application; from any directory, thanks to ZEPHYR_BASE."""
    return (
        *(str(workspace.west), "build", "-b", workspace.board),
        *("-d", str(tree), str(sources / "ports" / "zephyr" / "sample"), "--"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


def take_products(tree: Path, name: str) -> None:
    """Zephyr's ELF and map under the names of the other ports'."""
    for made, wanted in (("zephyr.elf", name), ("zephyr.map", f"{name}.map")):
        if not (tree / "zephyr" / made).is_file():
            raise BuildError(f"west ended well but left no zephyr/{made}", path=tree)
        shutil.copy2(tree / "zephyr" / made, tree / wanted)
