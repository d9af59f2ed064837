"""Reads a git repository without writing to it, not even to its index; and makes worktrees of it.

A ``Worktree`` stands at other commits without touching the user's folder. It is git's own, in the
state directory: with HEAD, index and bisect refs of its own (git-worktree(1), "Refs"), sharing the
objects. It is kept, so that from one commit to the next only the files that differ are written and
an incremental build stays one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import InfraError, UsageError
from harness.system import toolchain
from harness.system.artifact_cache import locked
from harness.system.call import ENGLISH
from harness.system.files import content_digest, disk_errors
from harness.system.paths import state_dir
from harness.system.progress import Progress, silent

_SECONDS = 120.0
_SHOWN = 8  # characters of a commit
_CONTENT = "content "
# The user's hooks, submodules and maintenance are for the user's own work.
_ALONE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)


class GitFailed(InfraError):
    """git refused: ``said`` is why, ``hint`` what it says to do."""

    def __init__(
        self, folder: Path, arguments: Sequence[str], said: str, hint: str | None = None
    ) -> None:
        self.arguments = tuple(arguments)
        self.said = said
        message = f"git {' '.join(arguments)} failed in {folder}: {said}"
        super().__init__(message, hint=hint, path=folder)


class Unreadable(InfraError):
    """A file that differs from the commit, and nobody knows how."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} differs from the commit and cannot be read: {error.strerror}",
            hint="make it readable, or move it away",
            path=path,
        )


@dataclass(frozen=True)
class Revision:
    """Where a work tree stands. ``branch`` is empty when HEAD is detached; ``changes`` is the
    sha256 over what differs from the commit, untracked files included, and empty when clean.
    A folder without a repository has the digest of its content instead of a commit."""

    commit: str
    branch: str
    changes: str
    edited: tuple[str, ...] = ()  # names of what ``changes`` stands for

    @classmethod
    def of_content(cls, files: Sequence[Path], folder: Path) -> Revision:
        """The revision of a folder without a repository. Raises OSError."""
        return cls(f"{_CONTENT}{content_digest(files, folder)[:16]}", "", "")

    @property
    def dirty(self) -> bool:
        return bool(self.changes)

    @property
    def identity(self) -> str:
        """Another one when the content is."""
        return f"git:{self.commit}:{self.changes}"


def shown(commit: str, *, edited: bool) -> str:
    """As people write it: "cff6f4dd+edits", "content 12345678"."""
    start = len(_CONTENT) if commit.startswith(_CONTENT) else 0
    return commit[: start + _SHOWN] + ("+edits" if edited else "")


def git(folder: Path, *arguments: str) -> str:
    """Runs git and returns its output. Raises GitFailed, ToolMissing."""
    return git_bytes(folder, *arguments).decode("utf-8", "replace").strip()


def git_bytes(folder: Path, *arguments: str) -> bytes:
    # a user's GIT_DIR and the like would make it speak of another repository
    environment = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", **ENGLISH}
    try:
        done = subprocess.run(
            [toolchain.locate("git"), "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitFailed(folder, arguments, f"no answer in {_SECONDS:.0f} s") from error
    if done.returncode != 0:
        raise GitFailed(folder, arguments, *_complaint(done.stderr, done.returncode))
    return done.stdout


def _complaint(said: bytes, status: int) -> tuple[str, str | None]:
    """Why git failed, and what it advises, which follows where there is any."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = next((i for i, line in enumerate(lines) if line.startswith(("fatal:", "error:"))), None)
    if fatal is None:
        return (lines[-1] if lines else f"status {status}"), None
    return lines[fatal], " ".join(lines[fatal + 1 :]) or None


def remove_locks(git_dir: Path) -> None:
    """Removes the locks of a killed git. The caller knows that none runs there. Raises OSError."""
    for lock in (*git_dir.glob("*.lock"), *git_dir.glob("refs/**/*.lock")):
        lock.unlink(missing_ok=True)


def is_work_tree(folder: Path) -> bool:
    """Whether ``folder`` is the top of a work tree (a clone, a submodule, a linked worktree)."""
    return (folder / ".git").exists()


def files(folder: Path, within: Sequence[str] = ()) -> list[Path]:
    """What a build may read of a work tree: all that is not ignored, of the paths ``within``."""
    said = git_bytes(
        folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *within
    )
    return [folder / os.fsdecode(name) for name in sorted(set(said.split(b"\0"))) if name]


def files_below(folder: Path) -> list[Path]:
    """All files of a folder that no repository describes, but what Python and editors leave."""
    found = []
    for directory, below, names in os.walk(folder):
        below[:] = sorted(n for n in below if not n.startswith(".") and n != "__pycache__")
        found += [Path(directory) / name for name in sorted(names) if not name.startswith(".")]
    return found


def identity(folder: Path) -> str:
    """Another one when the content of a folder is: commit and changes of a work tree, else every
    file's name, size and time."""
    if is_work_tree(folder):
        return revision(folder).identity
    digest = hashlib.sha256()
    for path in files_below(folder):
        stat = path.lstat()
        facts = f"{path.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
        digest.update(facts.encode("utf-8", "surrogateescape"))
    return f"files:{digest.hexdigest()}"


def revision(folder: Path, within: Sequence[str] = ()) -> Revision:
    """Commit, branch and changes of a work tree, of the paths ``within`` when some are given."""
    facts, names = _status(folder, within)
    commit, head = facts["branch.oid"], facts["branch.head"]
    if commit == "(initial)":
        commit = git(folder, "rev-parse", "HEAD")  # it says why there is none
    return Revision(commit, "" if head == "(detached)" else head, _digest(folder, names), names)


def changed(folder: Path, within: Sequence[str] = ()) -> tuple[str, ...]:
    """The files of a work tree that are not as in its commit, by name: edited, deleted, and new
    ones that are not ignored."""
    return _status(folder, within)[1]


def _status(folder: Path, within: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What git says of the branch, and the files that are not as in the commit: all in one call,
    for a checkout with its parts is many work trees. (git-status(1), "Porcelain Format Version 2",
    whose fields in front of a name are eight, ten where a merge is not done, or one.)"""
    said = git_bytes(
        folder,
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--",
        *within,
    )
    facts: dict[str, str] = {}
    names = set()
    for entry in map(os.fsdecode, filter(None, said.split(b"\0"))):
        if entry.startswith("# "):
            name, _, value = entry[2:].partition(" ")
            facts[name] = value
        else:
            names.add(entry.split(" ", {"1": 8, "u": 10}.get(entry[0], 1))[-1])
    return facts, tuple(sorted(names))


def blob_id(content: bytes) -> str:
    """How git names a file's content (gitformat-pack(5), with SHA-1)."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def tracked(folder: Path, within: Sequence[str] = ()) -> dict[str, str]:
    """The files that git's index has, by name, with the name of their content."""
    said = git_bytes(folder, "ls-files", "--stage", "-z", "--", *within)
    entries = (entry.split(b"\t", 1) for entry in said.split(b"\0") if entry)
    return {os.fsdecode(name): facts.split()[1].decode() for facts, name in entries}


def _digest(folder: Path, names: Sequence[str]) -> str:
    if not names:
        return ""
    digest = hashlib.sha256()
    for name in names:
        content = _content(folder / name)
        size = -1 if content is None else len(content)
        digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
        digest.update(content or b"")
    return digest.hexdigest()


def _content(path: Path) -> bytes | None:
    """The content of a file, or of a link itself. None for a deleted file, for a folder that holds
    a repository of its own, and for anything that is not a file. Raises Unreadable."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return os.fsencode(path.readlink())
        return path.read_bytes() if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(path, error) from error


@dataclass(frozen=True)
class Worktree:
    """Ours alone, as long as it is borrowed."""

    folder: Path

    def stand_at(self, commit: str) -> None:
        """Every file as ``commit`` has it and nothing else; those that are so are left alone."""
        git(self.folder, *_ALONE, "checkout", "--quiet", "--detach", "--force", commit)
        git(self.folder, *_ALONE, "clean", "-ffdxq")


def top_of(folder: Path) -> Path:
    """The top of the work tree that ``folder`` is in. Raises UsageError."""
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel"))
    except GitFailed as error:
        raise UsageError(
            f"{folder} is not the work tree of a git repository: {error.said}",
            hint="name the folder of your clone",
            path=folder,
            said=error.said,
        ) from error


@contextmanager
def borrowed(checkout: Path, use: str, progress: Progress = silent) -> Iterator[Worktree]:
    """The worktree of ``checkout`` for one ``use`` ("bisect"), made when there is none. It stands
    nowhere in particular.

    Raises InfraError when another process has it, UsageError, GitFailed, DiskError.
    """
    top = top_of(checkout)
    name = hashlib.sha256(str(top).encode()).hexdigest()[:12]
    place = state_dir() / "worktrees" / f"{use}-{name}"
    folder = place / top.name
    with disk_errors(f"preparing the worktree of {top}"):
        place.mkdir(parents=True, exist_ok=True)

    def busy() -> None:
        raise InfraError(
            f"another {use} of {top} is running; it works in {folder}",
            hint="wait for it to end, or give this one a state directory of its own (HIL_HOME)",
            kind="worktree_busy",
            path=folder,
            use=use,
            checkout=str(top),
        )

    with locked(folder, on_wait=busy):
        with disk_errors(f"preparing the worktree of {top}"):
            _prepare(top, folder, progress)
        yield Worktree(folder)


def _prepare(top: Path, folder: Path, progress: Progress) -> None:
    if not _belongs(folder, top):
        progress(f"making a worktree of {top}")
        if folder.exists():
            shutil.rmtree(folder)
        # --force twice: also where git remembers one that was deleted, or killed while it was made
        add = ("worktree", "add", "--quiet", "--no-checkout", "--force", "--force", "--detach")
        git(top, *_ALONE, *add, str(folder))
    # of a git that was killed: nobody else is here, we hold the lock
    remove_locks(_git_dir(folder, "--git-dir"))


def _belongs(folder: Path, top: Path) -> bool:
    """Whether it is a worktree of that repository; without a .git git would look further up."""
    if not (folder / ".git").is_file():
        return False
    try:
        return _git_dir(folder, "--git-common-dir") == _git_dir(top, "--git-common-dir")
    except GitFailed:
        return False


def _git_dir(folder: Path, which: str) -> Path:
    return Path(git(folder, "rev-parse", "--path-format=absolute", which)).resolve()
