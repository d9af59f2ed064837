"""The user's repository as a night found it: branch, commit, pull request, what a branch started
from, and files that were renamed. Nothing here fails: what git does not say is not known.

GitHub: https://docs.github.com/actions/reference/variables-reference; GitLab:
https://docs.gitlab.com/ci/variables/predefined_variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.config.case import is_user_file, repository_of
from harness.core.errors import HarnessError
from harness.nightly.history.nights import Night, Origin
from harness.system.git import git

_BRANCH = (
    "GITHUB_HEAD_REF",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
)
_BASE = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")


def origin_of(folder: Path, environ: Mapping[str, str]) -> Origin:
    """``dirty``: a tracked file is edited; what a night writes itself does not count. In CI the
    work tree is detached, and the service names the branch."""
    branch = _first(_BRANCH, environ) or _git(folder, "branch", "--show-current")
    merge = re.fullmatch(r"refs/pull/(\d+)/\w+", environ.get("GITHUB_REF", ""))
    return Origin(
        branch=branch,
        commit=_git(folder, "rev-parse", "--verify", "HEAD"),
        dirty=bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
        pull_request=merge[1] if merge else environ.get("CI_MERGE_REQUEST_IID", ""),
    )


def base_branch(environ: Mapping[str, str]) -> str:
    """The base branch of a pull request; "" outside of one."""
    return _first(_BASE, environ)


def started_from(folder: Path, nights: Iterable[Night]) -> Night | None:
    """The first of these nights, the newest first, whose commit is part of what is checked out; if
    git knows of none, as in a clone without history, the newest."""
    nights = list(nights)
    for night in nights:
        commit = night.origin.commit
        if commit and _git(folder, "merge-base", commit, "HEAD") == commit:
            return night
    return nights[0] if nights else None


def renamed_files(folder: Path, commit: str) -> dict[str, str]:
    """Model files that git takes for renamed since a commit: today's path, and the one before."""
    said = _git(folder, "diff", "--name-status", "-M", "--diff-filter=R", "-z", commit)
    words = said.split("\0")
    pairs = zip(words[2::3], words[1::3], strict=False)  # R100, before, after
    return {now: before for now, before in pairs if is_user_file(now)}


def last_commit(file: Path) -> str:
    """The last commit of a file (short id, author, subject) and a note of uncommitted edits."""
    root = repository_of(file)
    if root is None:
        return ""
    said = _git(root, "log", "-1", "--format=%h %an: %s", "--", str(file.absolute()))
    edited = _git(root, "status", "--porcelain", "--", str(file.absolute()))
    return f"{said}, and edits that are not committed" if said and edited else said


def _first(names: Iterable[str], environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        return git(folder, *arguments)
    except HarnessError:
        return ""
