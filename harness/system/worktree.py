"""A second work tree of a user's repository, to stand at other commits without touching the first.

It is git's own worktree, in the state directory: with HEAD, index and bisect refs of its own
(git-worktree(1), "Refs"), sharing the objects. It is kept, so that from one commit to the next
only the files that differ are written and an incremental build stays one.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from harness.core.errors import InfraError, UsageError
from harness.system.files import disk_errors, write_whole
from harness.system.git import GitFailed, git
from harness.system.paths import state_dir
from harness.system.progress import Progress, silent

# The user's hooks, submodules and maintenance are for the user's own work. That it is sparse is
# said here each time, since `git sparse-checkout` would write it to the user's configuration.
_ALONE = tuple(
    word
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "submodule.recurse=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "core.sparseCheckout=true",
        "core.sparseCheckoutCone=false",
    )
    for word in ("-c", setting)
)


class NotARepository(UsageError):
    """``said``: git's own words."""

    def __init__(self, folder: Path, said: str) -> None:
        self.said = said
        super().__init__(
            f"{folder} is not the work tree of a git repository: {said}",
            hint="name the folder of your clone",
            path=folder,
        )


class WorktreeBusy(InfraError):
    """Another process works in it."""

    kind = "worktree_busy"

    def __init__(self, use: str, checkout: Path, folder: Path) -> None:
        self.use = use
        self.checkout = str(checkout)
        super().__init__(
            f"another {use} of {checkout} is running; it works in {folder}",
            hint="wait for it to end, or give this one a state directory of its own (HIL_HOME)",
            path=folder,
        )


@dataclass(frozen=True)
class Worktree:
    """``folder`` is the worktree of ``checkout``; ours alone, as long as it is borrowed."""

    checkout: Path
    folder: Path

    def stand_at(self, commit: str) -> None:
        """Every file as ``commit`` has it and nothing else; those that are so are left alone."""
        git(self.folder, *_ALONE, "checkout", "--quiet", "--detach", "--force", commit)
        git(self.folder, *_ALONE, "clean", "-ffdxq")


def top_of(folder: Path) -> Path:
    """The top of the work tree that ``folder`` is in. Raises NotARepository."""
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel"))
    except GitFailed as error:
        raise NotARepository(folder, error.said) from error


@contextmanager
def borrowed(
    checkout: Path, use: str, within: Sequence[str] = ("*",), progress: Progress = silent
) -> Iterator[Worktree]:
    """The worktree of ``checkout`` for one ``use`` ("bisect"), made when there is none.

    Of folders it holds those ``within`` only (all, when nothing is said): fewer files to write,
    and none that a partial clone would fetch for nothing. It stands nowhere in particular.
    Raises WorktreeBusy, NotARepository, GitFailed, DiskError.
    """
    top = top_of(checkout)
    name = hashlib.sha256(str(top).encode()).hexdigest()[:12]
    place = state_dir() / "worktrees" / f"{use}-{name}"
    folder = place / top.name
    with disk_errors(f"preparing the worktree of {top}"):
        place.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(place / ".lock"))
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise WorktreeBusy(use, top, folder) from error
    try:
        _prepare(top, folder, within, progress)
        yield Worktree(top, folder)
    finally:
        lock.release()


def _prepare(top: Path, folder: Path, within: Sequence[str], progress: Progress) -> None:
    if not _belongs(folder, top):
        progress(f"making a worktree of {top}")
        with disk_errors(f"preparing the worktree of {top}"):
            if folder.exists():
                shutil.rmtree(folder)
        # --force twice: also where git remembers one that was deleted, or killed while it was made
        add = ("worktree", "add", "--quiet", "--no-checkout", "--force", "--force", "--detach")
        git(top, *_ALONE, *add, str(folder))
    ours = _git_dir(folder, "--git-dir")
    with disk_errors(f"preparing the worktree of {top}"):
        # of a git that was killed: nobody else is here, we hold the lock
        (ours / "index.lock").unlink(missing_ok=True)
        (ours / "info").mkdir(exist_ok=True)
        lines = ("/*", "!/*/", *(f"/{name}" for name in within))
        write_whole(ours / "info" / "sparse-checkout", "".join(f"{line}\n" for line in lines))


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
