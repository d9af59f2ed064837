"""Protects what is said of a work tree: commit, branch, and a digest of all that differs from the
commit; that nothing is written to it; and why git failed, when it did."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ToolMissing
from harness.system import git as system_git
from harness.system.git import (
    GitFailed,
    Unreadable,
    blob_id,
    changed,
    files,
    is_work_tree,
    revision,
    tracked,
)
from tests.firmware.executorch.small import commit, git, head, repository

NOBODY = 65534


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    for name in ("a/one.c", "b/two.c"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("int x;\n")
    (folder / ".gitignore").write_text("*.o\n")
    repository(folder)
    return folder


def test_a_clean_tree_has_commit_branch_and_no_changes(tree: Path) -> None:
    there = revision(tree)
    assert (there.commit, there.branch, there.changes) == (head(tree), "main", "")
    assert not there.dirty
    git(tree, "checkout", "-q", "--detach")
    assert revision(tree).branch == ""


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda tree: (tree / "a/one.c").write_text("int y;\n"),
    "staged": lambda tree: ((tree / "a/one.c").write_text("int y;\n"), git(tree, "add", "-A")),
    "new": lambda tree: (tree / "a/new.c").write_text(""),
    "deleted": lambda tree: (tree / "a/one.c").unlink(),
    "link": lambda tree: (tree / "a/link.c").symlink_to("one.c"),
    "to a folder": lambda tree: (tree / "a/link.c").symlink_to("../b"),
    "mode": lambda tree: (tree / "a/one.c").chmod(0o755),
    "odd name": lambda tree: (tree / os.fsdecode(b"a/\xff \n.c")).write_text("x"),
    "repository inside": lambda tree: repository_inside(tree),
}


def repository_inside(tree: Path) -> None:
    (tree / "a" / "inner").mkdir()
    (tree / "a" / "inner" / "x").write_text("")
    repository(tree / "a" / "inner")


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_in_the_digest(tree: Path, tmp_path: Path, change: str) -> None:
    """And equal changes give equal digests, in another clone, at another time."""
    git(tmp_path, "clone", "-q", str(tree), "other")
    CHANGES[change](tree)
    there = revision(tree)
    assert there.dirty
    assert there.changes not in {"", revision(tmp_path / "other").changes}
    CHANGES[change](tmp_path / "other")
    assert revision(tmp_path / "other").changes == there.changes


def test_two_changes_of_one_file_differ(tree: Path) -> None:
    (tree / "a/one.c").write_text("1")
    first = revision(tree).changes
    (tree / "a/one.c").write_text("2")
    assert revision(tree).changes != first


def test_a_link_that_points_elsewhere_is_another_change(tree: Path) -> None:
    (tree / "link").symlink_to("a")
    first = revision(tree).changes
    (tree / "link").unlink()
    (tree / "link").symlink_to("b")
    assert revision(tree).changes != first


def test_ignored_files_and_other_folders_do_not_count(tree: Path) -> None:
    (tree / "a/one.o").write_text("x")
    assert not revision(tree).dirty
    (tree / "b/two.c").write_text("x")
    assert not revision(tree, ("a", "c")).dirty
    assert revision(tree, ("b",)).dirty
    assert revision(tree).dirty


def test_a_tracked_file_that_became_a_pipe_is_not_read(tree: Path) -> None:
    """It would wait for ever."""
    (tree / "a/one.c").unlink()
    os.mkfifo(tree / "a/one.c")
    assert revision(tree).dirty


def test_nothing_is_written(tree: Path) -> None:
    """Not even the index, which git refreshes in passing where a time has changed."""
    index = tree / ".git" / "index"
    before = index.read_bytes()
    os.utime(tree / "a/one.c", (1, 1))
    revision(tree)
    files(tree)
    assert index.read_bytes() == before
    git(tree, "status")
    assert index.read_bytes() != before, "it would have been refreshed"


def test_variables_of_another_repository_are_not_heeded(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git, which exports them."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert revision(tree).commit == head(tree)


def test_files_are_what_is_not_ignored(tree: Path) -> None:
    (tree / "a/one.o").write_text("x")
    (tree / "a/new.c").write_text("x")
    names = [str(path.relative_to(tree)) for path in files(tree)]
    assert names == [".gitignore", "a/new.c", "a/one.c", "b/two.c"]
    assert files(tree, ("b",)) == [tree / "b/two.c"]


def test_what_is_a_work_tree(tree: Path, tmp_path: Path) -> None:
    assert is_work_tree(tree)
    assert not is_work_tree(tree / "a")
    git(tree, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert is_work_tree(tmp_path / "linked")
    assert revision(tmp_path / "linked").commit == head(tree)


def test_without_git(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="git is not installed") as caught:
        revision(tree)
    assert caught.value.package == "git"


def test_why_git_failed(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="fatal: not a git repository") as caught:
        revision(tmp_path)
    assert caught.value.said.startswith("fatal: ")
    assert caught.value.arguments[0] == "status"


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(GitFailed, match=r"fatal: ambiguous argument 'HEAD'"):
        revision(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container: git says what to do, after why it failed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (tree, *tree.rglob("*")):
        os.chown(path, 12345, 12345)
    with pytest.raises(GitFailed, match="fatal: detected dubious ownership") as caught:
        revision(tree)
    assert f"git config --global --add safe.directory {shlex.quote(str(tree))}" in str(
        caught.value.hint
    )


def test_a_git_that_does_not_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_git, "_SECONDS", -1.0)
    with pytest.raises(GitFailed, match="no answer in -1 s"):
        revision(tree)


def test_a_change_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content decides what is built, and nobody knows it. Root reads everything, so that it
    is somebody else for a moment, whose folder it cannot be below pytest's own."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        monkeypatch.setenv("HOME", folder)
        (tree / "one.c").write_text("int x;\n")
        repository(tree)
        (tree / "two.c").write_text("x")
        (tree / "two.c").chmod(0)
        for path in (tree, *tree.rglob("*")) if root else ():
            os.chown(path, NOBODY, NOBODY)
        try:
            if root:
                os.seteuid(NOBODY)
            with pytest.raises(Unreadable, match="cannot be read: Permission denied") as caught:
                revision(tree)
        finally:
            if root:
                os.seteuid(0)
    assert caught.value.path == str(tree / "two.c")
    assert "move it away" in str(caught.value.hint)


def test_commits_differ(tree: Path) -> None:
    before = revision(tree).commit
    (tree / "a/one.c").write_text("int z;\n")
    assert commit(tree, "another") == revision(tree).commit != before


def test_content_is_named_as_git_does(tree: Path) -> None:
    for content in (b"", b"a\n", bytes(range(256))):
        (tree / "x").write_bytes(content)
        assert blob_id(content) == system_git.git(tree, "hash-object", "x")


def test_tracked_files_by_content(tree: Path) -> None:
    """With any name; an edit that is not staged does not count."""
    (tree / "a" / "ü b.c").write_text("b\n")
    commit(tree, "another")
    (tree / "a" / "one.c").write_text("other\n")
    expected = {"a/one.c": blob_id(b"int x;\n"), "a/ü b.c": blob_id(b"b\n")}
    assert tracked(tree, ("a",)) == expected
    assert tracked(tree).keys() == {*expected, "b/two.c", ".gitignore"}


def test_what_is_not_as_in_the_commit(tree: Path) -> None:
    assert changed(tree) == ()
    (tree / "a" / "one.c").unlink()
    (tree / "a" / "ü b.c").write_text("")
    (tree / "a" / "ignored.o").write_text("")
    (tree / "b" / "two.c").write_text("edited, but elsewhere\n")
    assert changed(tree, ("a",)) == ("a/one.c", "a/ü b.c")
    git(tree, "add", "a")
    assert changed(tree, ("a",)) == ("a/one.c", "a/ü b.c")


def test_a_merge_that_is_not_done_is_a_change(tree: Path) -> None:
    """git tells it with other fields in front of the name."""
    git(tree, "checkout", "-q", "-b", "other")
    (tree / "a/one.c").write_text("int other;\n")
    commit(tree, "one")
    git(tree, "checkout", "-q", "main")
    (tree / "a/one.c").write_text("int main;\n")
    commit(tree, "one")
    with pytest.raises(subprocess.CalledProcessError):  # a conflict
        git(tree, "merge", "-q", "other")
    assert changed(tree) == ("a/one.c",)
    assert revision(tree).dirty
