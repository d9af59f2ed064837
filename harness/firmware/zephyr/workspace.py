"""The Zephyr workspace that a runner is built in: where, which Zephyr, with which
compiler, and whether it has a board.

That is asked before anything is exported. Where a board is there and its variant is not, west says
so.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import ToolMissing, UsageError
from harness.firmware.zephyr.compiler import Compiler, find_compiler
from harness.system.files import sha256_of

_SECONDS = 120
_HOW = "make one with `hil zephyr init WORKSPACE`, then `export ZEPHYR_BASE=WORKSPACE/zephyr`"
_FILE = "board.yml"  # of every board since Zephyr 3.7 (hardware model v2)
# A module's folders of boards (Zephyr, doc/develop/modules.rst: build settings).
_ROOT = re.compile(r"^\s*board_root:\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Workspace:
    """Where to build, with what, and for which board. ``identity`` changes when Zephyr does."""

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
        """Accepted sizes hold for one: Zephyr's version counts for as much as the compiler's."""
        return f"Zephyr {self.version} {self.compiler.name}"

    @property
    def environment(self) -> dict[str, str]:
        return {"ZEPHYR_BASE": str(self.base), **dict(self.compiler.environment)}


def find_workspace(board: str, environ: Mapping[str, str] = os.environ) -> Workspace:
    """The workspace that ``$ZEPHYR_BASE`` names; the board is not checked.

    Every project of the workspace is read, linked checkouts included, so that an edit in any of
    them is another build. Raises UsageError without a workspace, ToolMissing without west or a
    compiler; all say how to get it.
    """
    base, west = find_zephyr(environ), find_west(environ)
    revisions = [_revision(base, _read_in_a_build(base, board))]
    revisions += [_revision(project, [project]) for project in _projects(west, base)]
    compiler = find_compiler(environ)
    return Workspace(west, base, board, "\n".join(revisions), compiler, zephyr_version(base))


def require_workspace(board: str, cpu: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raises as ``find_workspace`` does, and BoardUnknown and CpuUnknown; nothing of Zephyr is
    read."""
    base, west = find_zephyr(environ), find_west(environ)
    if not has_board(base, board) and not is_in(_projects(west, base), board):
        raise BoardUnknown(board, zephyr_version(base), base, likely(base, board))
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
    try:
        said = dict(re.findall(r"^(\w+) *= *(\S*)", (base / "VERSION").read_text(), re.MULTILINE))
    except OSError:
        return "unknown"
    numbers = (said.get(name, "?") for name in ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL"))
    extra = said.get("EXTRAVERSION")
    return ".".join(numbers) + (f"-{extra}" if extra else "")


def find_west(environ: Mapping[str, str]) -> Path:
    """In PATH, as in the Python environment that Zephyr's documentation has its users activate,
    or beside our own Python."""
    beside = Path(sys.executable).with_name("west")
    found = shutil.which("west", path=environ.get("PATH")) or (beside if beside.is_file() else None)
    if found is None:
        raise ToolMissing("west is not installed", hint="pip install west", tool="west")
    return Path(found)


def _projects(west: Path, base: Path) -> list[Path]:
    """Every other repository of the workspace, links followed."""
    done = subprocess.run(
        [west, "list", "--format", "{abspath}"],
        cwd=base,
        env={**os.environ, "ZEPHYR_BASE": str(base)},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise UsageError(
            f"west does not know the workspace of {base}: {last}", hint=_HOW, path=base
        )
    found = {Path(line).resolve() for line in done.stdout.splitlines()}
    return sorted(path for path in found - {base.resolve()} if path.is_dir())


def _read_in_a_build(base: Path, board: str) -> list[Path]:
    """Of Zephyr, all that a build of ours can read: no tests, no boards of other vendors. That is
    two fifths of its files."""
    boards = base / "boards"
    vendors = {found.parent for found in boards.glob(f"*/{board.partition('/')[0]}")}
    elsewhere = {base / "doc", base / "samples", base / "tests", boards}
    kept = vendors | {boards / "common"}
    return [path for path in base.iterdir() if path not in elsewhere] + [
        path for path in boards.glob("*") if path.is_file() or path in kept
    ]


def _revision(repository: Path, read: Sequence[Path]) -> str:
    """What is checked out, edits to its files and new files included; of what is no repository,
    that of the files and folders ``read``."""
    git = shutil.which("git")
    digest = hashlib.sha256()
    if git is None or not (repository / ".git").exists():
        digest.update(_times(read))
        return digest.hexdigest()
    for words in (["rev-parse", "HEAD"], ["diff", "HEAD", "--no-ext-diff", "--binary"]):
        digest.update(_git(git, repository, words))
    for name in _git(git, repository, ["ls-files", "--others", "--exclude-standard", "-z"]).split(
        b"\0"
    ):
        new = repository / os.fsdecode(name)
        if name and new.is_file():
            digest.update(name + b"\0" + bytes.fromhex(sha256_of(new)))
    return digest.hexdigest()


def _times(places: Sequence[Path]) -> bytes:
    """Of a release that was unpacked: every file's size and time. What Python and editors leave
    does not count. Asked of find(1): these are thousands of files, in every run."""
    hidden = ["(", "-name", ".?*", "-o", "-name", "__pycache__", ")", "-prune"]
    shown = ["-o", "-type", "f", "-printf", "%p %s %T@\\n"]
    done = subprocess.run(
        ["find", *map(str, places), *hidden, *shown],
        capture_output=True,
        check=False,
        timeout=_SECONDS,
    )
    return b"\n".join(sorted(done.stdout.splitlines()))


def _git(git: str, repository: Path, words: Sequence[str]) -> bytes:
    return subprocess.run(
        [git, "-C", str(repository), *words], capture_output=True, check=False, timeout=_SECONDS
    ).stdout


class BoardUnknown(UsageError):
    """``board``: as a target names it. ``likely``: boards of similar names that there are."""

    def __init__(self, board: str, version: str, base: Path, likely: list[str]) -> None:
        self.board, self.version, self.likely = board, version, likely
        there = f" (there are {', '.join(likely)})" if likely else ""
        super().__init__(
            f"Zephyr {version} has no board {name_of(board)}{there}, and the target is built for "
            f"{board}",
            hint="take a Zephyr that has it: `hil zephyr init DIR --zephyr VERSION` makes a "
            "workspace; `west boards` lists what one has",
            path=base / "boards",
        )


def name_of(board: str) -> str:
    """Without qualifiers and revision: "mps3" of "mps3/corstone300/an547"."""
    return re.split("[/@]", board, maxsplit=1)[0]


def has_board(base: Path, board: str) -> bool:
    """In Zephyr itself."""
    return any(_boards(base, name_of(board)))


def is_in(projects: Iterable[Path], board: str) -> bool:
    """In one of these modules, which say in a file where their boards are."""
    return any(
        has_board(project / root, board)
        for project in projects
        for root in _ROOT.findall(_text(project / "zephyr" / "module.yml"))
    )


def likely(base: Path, board: str) -> list[str]:
    names = {file.parent.name for file in _boards(base, "*")}
    return difflib.get_close_matches(name_of(board), sorted(names), 3, 0.7)


def _boards(root: Path, name: str) -> Iterator[Path]:
    for vendors in ("", "*/"):
        yield from (root / "boards").glob(f"{vendors}{name}/{_FILE}")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
