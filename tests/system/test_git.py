"""Protects what is known of a work tree: its files by content, and what is not as in the commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.system.git import blob_id, changed, git, tracked


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    def run(*arguments: str) -> None:
        name = ("-c", "user.name=t", "-c", "user.email=t@t")
        subprocess.run(["git", "-C", str(tmp_path), *name, *arguments], check=True)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.py").write_text("a\n")
    (tmp_path / "in" / "ü b.py").write_text("b\n")
    (tmp_path / "out.py").write_text("c\n")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    run("init", "-q")
    run("add", ".")
    run("commit", "-qm", "all")
    return tmp_path


def test_content_is_named_as_git_does(tree: Path) -> None:
    for content in (b"", b"a\n", bytes(range(256))):
        (tree / "x").write_bytes(content)
        assert blob_id(content) == git(tree, "hash-object", "x")


def test_tracked_files_by_content(tree: Path) -> None:
    """With any name; an edit that is not staged does not count."""
    expected = {"in/a.py": blob_id(b"a\n"), "in/ü b.py": blob_id(b"b\n")}
    (tree / "in" / "a.py").write_text("other\n")
    assert tracked(tree, ("in",)) == expected
    assert tracked(tree).keys() == {*expected, "out.py", ".gitignore"}


def test_what_is_not_as_in_the_commit(tree: Path) -> None:
    assert changed(tree) == ()
    (tree / "in" / "a.py").unlink()
    (tree / "in" / "ü b.py").write_text("edited\n")
    (tree / "in" / "new.py").write_text("")
    (tree / "in" / "ignored.pyc").write_text("")
    (tree / "out.py").write_text("edited, but elsewhere\n")
    assert changed(tree, ("in",)) == ("in/a.py", "in/new.py", "in/ü b.py")
    git(tree, "add", "in/ü b.py")
    assert "in/ü b.py" in changed(tree, ("in",))
