"""The commits of a repository between two revisions, as git counts them. Only reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.system.git import GitFailed, git, revision

_FORMAT = "%H%x00%h%x00%aI%x00%an%x00%s"


class UnknownRevision(UsageError):
    """``said``: git's own words."""

    def __init__(self, name: str, repository: Path, said: str) -> None:
        self.revision = name
        self.said = said
        super().__init__(
            f"{repository} has no revision {name!r}: {said}",
            hint=f"`git -C {repository} log --oneline` lists them; a shallow clone gets the rest "
            "with `git fetch --unshallow --tags`",
            path=repository,
        )


class Unrelated(UsageError):
    """The two revisions have no commit in common."""

    def __init__(self, good: Commit, bad: Commit, repository: Path) -> None:
        self.good, self.bad = good.sha, bad.sha
        super().__init__(
            f"{good.short} and {bad.short} have no history in common",
            hint="in a shallow clone it may be cut off: `git fetch --unshallow`",
            path=repository,
        )


@dataclass(frozen=True)
class Commit:
    """``date`` is the author's, ISO 8601 with the offset."""

    sha: str
    short: str
    date: str
    author: str
    subject: str

    def __str__(self) -> str:
        return f"{self.short} {self.subject}"


@dataclass(frozen=True)
class History:
    repository: Path

    def commit(self, name: str) -> Commit:
        """The commit that a revision (a tag, a branch, HEAD~3, a hash) stands for."""
        try:
            if name.startswith("-"):
                raise UnknownRevision(name, self.repository, "a revision begins otherwise")
            sha = git(self.repository, "rev-parse", "--verify", f"{name}^{{commit}}")
            said = git(self.repository, "show", "-s", f"--format={_FORMAT}", sha)
        except GitFailed as error:
            raise UnknownRevision(name, self.repository, error.said) from error
        return Commit(*said.split("\0", 4))

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        """Also of itself."""
        return not git(self.repository, "rev-list", "-n", "1", older.sha, f"^{newer.sha}")

    def merge_bases(self, good: Commit, bad: Commit) -> tuple[Commit, ...]:
        """Where the two parted. Raises Unrelated."""
        try:
            found = git(self.repository, "merge-base", "--all", good.sha, bad.sha)
        except GitFailed as error:  # its way to say that there is none
            raise Unrelated(good, bad, self.repository) from error
        return tuple(self.commit(sha) for sha in found.split())

    def between(self, goods: Iterable[Commit], bad: Commit) -> tuple[str, ...]:
        """What is in ``bad`` and in none of ``goods``, by hash: the one that halves it first.

        It is the order of ``git bisect`` (git-rev-list(1), --bisect-all).
        """
        said = git(self.repository, "rev-list", "--bisect-all", *_span(goods, bad))
        return tuple(line.split(" ", 1)[0] for line in said.splitlines())

    def newest_first(self, goods: Iterable[Commit], bad: Commit) -> tuple[Commit, ...]:
        """The same commits in the order of ``git log``."""
        said = git(self.repository, "rev-list", "--topo-order", *_span(goods, bad))
        return tuple(self.commit(sha) for sha in said.split())

    def dirty(self) -> bool:
        return revision(self.repository).dirty


def _span(goods: Iterable[Commit], bad: Commit) -> tuple[str, ...]:
    return (bad.sha, *(f"^{good.sha}" for good in goods))
