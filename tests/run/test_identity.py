"""Protects who a record says has judged: a commit where there is one, and whether it has edits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.run.record import exact_harness_revision, harness_revision, host


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "clone")
    folder = tmp_path / "clone"
    (folder / "file").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def test_it_is_what_git_says_however_it_is_kept(clone: Path) -> None:
    """A branch, a packed one, a detached HEAD, a linked worktree: without asking git."""
    commit = git(clone, "rev-parse", "HEAD")[:12]
    assert harness_revision(clone) == commit
    git(clone, "pack-refs", "--all")
    assert harness_revision(clone) == commit
    git(clone, "worktree", "add", "-q", "-b", "other", "../linked")
    assert harness_revision(clone.parent / "linked") == commit
    git(clone, "checkout", "-q", "--detach")
    assert harness_revision(clone) == commit


def test_edits_are_told_by_who_asks_git(clone: Path) -> None:
    clean = exact_harness_revision(clone)
    assert clean == harness_revision(clone)
    (clone / "file").write_text("2")
    first = exact_harness_revision(clone)
    (clone / "file").write_text("3")
    assert first.startswith(f"{clean}+edits ")
    assert exact_harness_revision(clone) != first


def test_a_broken_clone_is_nobody_and_no_error(clone: Path) -> None:
    (clone / ".git" / "HEAD").unlink()
    assert harness_revision(clone) == ""


def test_an_installation_has_its_version(tmp_path: Path) -> None:
    assert harness_revision(tmp_path)[:1].isdigit()
    assert exact_harness_revision(tmp_path) == harness_revision(tmp_path)


def test_the_host_is_named_with_its_machine() -> None:
    assert host().endswith(")")
    assert " (" in host()
