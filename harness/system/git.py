"""What git says of a folder. Nothing is written: not to the folder, nor to its index."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError, ToolMissing

_SECONDS = 120.0


class GitFailed(InfraError):
    """git refused: ``said`` is its own last line."""

    def __init__(self, folder: Path, arguments: Sequence[str], said: str) -> None:
        self.arguments = tuple(arguments)
        self.said = said
        super().__init__(f"git {' '.join(arguments)} failed in {folder}: {said}", path=folder)


@dataclass(frozen=True)
class Revision:
    """Where a work tree stands. ``branch`` is empty when HEAD is detached; ``changes`` is the
    sha256 over what differs from the commit, untracked files included, and empty when clean."""

    commit: str
    branch: str
    changes: str

    @property
    def dirty(self) -> bool:
        return bool(self.changes)


def git(folder: Path, *arguments: str) -> str:
    """What git prints. Raises GitFailed, ToolMissing."""
    return git_bytes(folder, *arguments).decode("utf-8", "replace").strip()


def git_bytes(folder: Path, *arguments: str) -> bytes:
    # a user's GIT_DIR and the like would make it speak of another repository
    environment = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolMissing(
            "git is not installed", tool="git", package="git",
            hint="Debian and Ubuntu: apt-get install git",
        ) from error  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise GitFailed(folder, arguments, f"no answer in {_SECONDS:.0f} s") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(folder, arguments, said[-1] if said else f"status {done.returncode}")
    return done.stdout


def is_work_tree(folder: Path) -> bool:
    """Whether ``folder`` is the top of a work tree (a clone, a submodule, a linked worktree)."""
    return (folder / ".git").exists()


def revision(folder: Path, within: Sequence[str] = ()) -> Revision:
    """Commit, branch and changes of a work tree, of the paths ``within`` when some are given."""
    commit = git(folder, "rev-parse", "HEAD")
    name = git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    said = git_bytes(
        folder, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
        "--ignore-submodules=all", "--", *within,
    )  # fmt: skip
    changed = sorted(os.fsdecode(entry[3:]) for entry in said.split(b"\0") if entry)
    return Revision(commit, "" if name == "HEAD" else name, _digest(folder, changed))


def _digest(folder: Path, changed: Sequence[str]) -> str:
    if not changed:
        return ""
    digest = hashlib.sha256()
    for name in changed:
        path = folder / name
        try:
            content = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            content = None  # deleted; or a folder that holds a repository of its own
        size = -1 if content is None else len(content)
        digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
        digest.update(content or b"")
    return digest.hexdigest()
