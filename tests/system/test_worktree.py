"""The borrowed worktree: it stands where it is told, and the user's work is left alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.errors import InfraError, UsageError
from harness.system.git import borrowed, top_of

from .repository import Repository, make_repository


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Repository, str, str]:
    """A repository with two commits, which differ in one of two files."""
    made = make_repository(tmp_path / "checkout")
    first = made.commit("first", same="s", changed="1")
    return made, first, made.commit("second", changed="2")


def contents(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir() if p.name != ".git"}


def test_it_stands_at_any_commit(two: tuple[Repository, str, str]) -> None:
    user, first, second = two
    with borrowed(user.folder, "test") as tree:
        assert tree.folder.name == "checkout"  # as a build may want it to be called
        tree.stand_at(first)
        assert contents(tree.folder) == {"same": "s", "changed": "1"}
        tree.stand_at(second)
        assert contents(tree.folder) == {"same": "s", "changed": "2"}


def test_only_what_differs_is_written(two: tuple[Repository, str, str]) -> None:
    """Else every step would build everything anew."""
    user, first, second = two
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
        before = (tree.folder / "same").stat().st_mtime_ns, (tree.folder / "same").stat().st_ino
    with borrowed(user.folder, "test") as again:
        assert again.folder == tree.folder
        again.stand_at(second)
        after = (again.folder / "same").stat().st_mtime_ns, (again.folder / "same").stat().st_ino
    assert after == before


def test_what_somebody_left_in_it_is_gone(two: tuple[Repository, str, str]) -> None:
    """Edits, new files, ignored ones, and the lock of a git that was killed."""
    user, _, second = two
    (user.folder / ".gitignore").write_text("*.o\n")
    third = user.commit("ignores")
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(third)
        (tree.folder / "changed").write_text("edited")
        (tree.folder / "new").mkdir()
        (tree.folder / "new" / "a.o").write_text("")
        git_dir = Path((tree.folder / ".git").read_text().split(": ")[1].strip())
        (git_dir / "index.lock").write_text("")
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(second)
        assert contents(tree.folder) == {"same": "s", "changed": "2"}


def test_the_users_work_is_untouched(two: tuple[Repository, str, str]) -> None:
    """Edits, index, stash, hooks, a branch and a bisect in progress: all as it was."""
    user, first, second = two
    (user.folder / "same").write_text("stashed")
    user.git("stash")
    user.git("checkout", "-q", "-b", "mine")
    for number in range(4):
        user.commit(f"mine {number}", changed=f"m{number}")
    user.git("bisect", "start", "HEAD", second)
    (user.folder / "same").write_text("staged")
    user.git("add", "same")
    (user.folder / "changed").write_text("edited")
    hook = user.folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\necho ran >> {user.folder}/hook-ran\n")
    hook.chmod(0o755)
    before = user.state()
    assert any(name.startswith(".git/refs/bisect/") for name in before)
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
        tree.stand_at(second)
    assert user.state() == before
    assert user.git("stash", "list")
    assert "mine" in user.git("bisect", "visualize", "--oneline")


def test_nothing_of_the_callers_environment_leads_elsewhere(
    two: tuple[Repository, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a git hook, which has GIT_DIR and GIT_INDEX_FILE set."""
    user, first, _ = two
    other = make_repository(tmp_path / "other")
    other.commit("other", other="o")
    before = other.state()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
        assert contents(tree.folder) == {"same": "s", "changed": "1"}
    monkeypatch.undo()
    assert other.state() == before


@pytest.mark.parametrize("what", ["worktree", "its .git", "the repository", "half of it"])
def test_it_is_made_again_when_something_of_it_is_gone(
    two: tuple[Repository, str, str], tmp_path: Path, what: str
) -> None:
    """Even where a repository lies above: git would look for one there."""
    user, first, _ = two
    make_repository(tmp_path / "home")
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
    if what == "worktree":
        shutil.rmtree(tree.folder)
    elif what == "its .git":
        (tree.folder / ".git").unlink()
    elif what == "half of it":  # git was killed while it made it, and says so in "locked"
        shutil.rmtree(tree.folder)
        (user.folder / ".git" / "worktrees" / "checkout" / "locked").write_text("initializing\n")
    else:
        shutil.rmtree(user.folder)
        user = make_repository(user.folder)
        first = user.commit("another", same="s", changed="1")
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
        assert contents(tree.folder) == {"same": "s", "changed": "1"}


def test_a_state_directory_inside_the_checkout(
    two: tuple[Repository, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its own .git the worktree would be taken for a folder of the user's tree."""
    user, first, _ = two
    (user.folder / ".git" / "info" / "exclude").write_text(".hil\n")
    monkeypatch.setenv("HIL_HOME", str(user.folder / ".hil"))
    with borrowed(user.folder, "test") as tree:
        (tree.folder / ".git").unlink()
    (user.folder / "changed").write_text("edited")
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)
        assert contents(tree.folder) == {"same": "s", "changed": "1"}
    assert (user.folder / "changed").read_text() == "edited"
    assert user.git("rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_one_at_a_time(two: tuple[Repository, str, str]) -> None:
    user, first, _ = two
    with borrowed(user.folder, "test") as tree:
        with pytest.raises(InfraError, match=r"another test of .*checkout is running") as caught:
            borrowed(user.folder, "test").__enter__()
        assert caught.value.path == str(tree.folder)
        with borrowed(user.folder, "other use") as other:
            assert other.folder != tree.folder
            other.stand_at(first)


def test_a_killed_one_leaves_it_free(two: tuple[Repository, str, str]) -> None:
    user, first, _ = two
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from harness.system.git import borrowed\n"
        "with borrowed(Path(sys.argv[1]), 'test') as tree:\n"
        "    print('here', flush=True)\n"
        "    time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(user.folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n"
    with pytest.raises(InfraError, match="is running"):
        borrowed(user.folder, "test").__enter__()
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    with borrowed(user.folder, "test") as tree:
        tree.stand_at(first)


def test_a_folder_that_is_in_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the work tree of a git repository") as caught:
        top_of(tmp_path)
    assert "not a git repository" in caught.value.said
    assert caught.value.path == str(tmp_path)


def test_the_top_is_found_from_below(two: tuple[Repository, str, str]) -> None:
    user, _, _ = two
    (user.folder / "below").mkdir()
    assert top_of(user.folder / "below") == user.folder
