"""Who judged and where: the harness's own revision and the machine. A few file reads, no process.

A clone is known by the commit that its ``HEAD`` names (gitrepository-layout(5)), an installation by
its version. Whether a clone has edits is asked of git by whoever has the time (``exact_revision``).
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from harness.system.git import is_work_tree
from harness.system.paths import import_root

_SHOWN = 12  # characters of a commit
_EDITS = 8


def host() -> str:
    """ "name (x86_64)"."""
    machine = os.uname()
    return f"{machine.nodename} ({machine.machine})"


def revision(root: Path | None = None) -> str:
    """The commit of the clone, or the version of an installation; "" when nobody can say."""
    root = root or import_root()
    try:
        if is_work_tree(root):
            return _commit(root)[:_SHOWN]
        return metadata.version("executorch-hil")
    except (OSError, UnicodeDecodeError, metadata.PackageNotFoundError):
        return ""


def exact_revision(root: Path | None = None) -> str:
    """The same, with a digest of the edits of a clone. Raises what ``system.git.revision`` does."""
    root = root or import_root()
    if not is_work_tree(root):
        return revision(root)
    from harness.system.git import revision as of_work_tree

    found = of_work_tree(root)
    edits = f"+edits {found.changes[:_EDITS]}" if found.dirty else ""
    return found.commit[:_SHOWN] + edits


def _commit(root: Path) -> str:
    """Of ``HEAD``, in a clone or in one of its linked worktrees. Raises OSError."""
    own = root / ".git"
    if own.is_file():
        own = root / own.read_text("utf-8").removeprefix("gitdir:").strip()
    head = (own / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = own / "commondir"
    shared = own / common.read_text("utf-8").strip() if common.is_file() else own
    for loose in (own / name, shared / name):
        if loose.is_file():
            return loose.read_text("utf-8").strip()
    packed = (shared / "packed-refs").read_text("utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
