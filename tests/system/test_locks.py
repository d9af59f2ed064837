"""Tests of which process uses what, and of what a killed process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.system.locks import claimed, in_use
from harness.system.paths import import_root

USER = """
import sys, signal
from pathlib import Path
from harness.system.locks import in_use
for name in sys.argv[1:]:
    in_use(Path(name))
print("uses", flush=True)
signal.pause()
"""


def a_user(*paths: Path) -> subprocess.Popen[str]:
    """A process that uses them until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, *map(str, paths)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(import_root())},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "uses\n"
    return process


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    (tmp_path / ".hil" / "cache" / "programs").mkdir(parents=True)
    return tmp_path / ".hil"


def is_used(path: Path) -> bool:
    with claimed(path) as free:
        return not free


def test_it_is_held_until_the_process_dies(state: Path) -> None:
    """However it dies."""
    one, two = state / "cache" / "programs" / "one", state / "runs" / "two"
    process = a_user(one, two, one)
    assert is_used(one)
    assert is_used(two)
    assert not is_used(state / "runs" / "three")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_used(one)
    assert not is_used(two)


def test_our_own_is_held_and_was_used_now(state: Path) -> None:
    """An entry's time is that of its last use."""
    entry = state / "cache" / "programs" / "mine"
    entry.mkdir()
    os.utime(entry, (1, 1))
    in_use(entry)
    assert entry.stat().st_mtime > 1_000_000
    assert is_used(entry)


def test_what_is_above_a_used_path_is_used(state: Path) -> None:
    """A recording of a suite is below the entry that is pruned."""
    in_use(state / "cache" / "programs" / "suite" / "tests" / "one")
    assert is_used(state / "cache" / "programs" / "suite")
    assert not is_used(state / "cache" / "programs" / "suite" / "tests" / "two")


def test_homes_that_share_a_cache_know_of_each_other(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a link to it."""
    entry = state / "cache" / "programs" / "shared"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "cache").symlink_to(state / "cache")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "other"))
    process = a_user(tmp_path / "other" / "cache" / "programs" / "shared")
    monkeypatch.setenv("HIL_HOME", str(state))
    assert is_used(entry)
    process.kill()
    process.wait()


def test_nobody_starts_to_use_what_another_has_claimed(state: Path) -> None:
    """Who prunes does not look at what changes meanwhile; afterwards it goes on."""
    entry = state / "cache" / "programs" / "wanted"
    user = threading.Thread(target=in_use, args=(entry,))
    with claimed(entry) as free:
        assert free
        user.start()
        user.join(0.2)
        assert user.is_alive()
    user.join()
    assert is_used(entry)


def test_two_cannot_claim_one_path(state: Path) -> None:
    entry = state / "cache" / "programs" / "old"
    with claimed(entry) as free:
        assert free
        assert is_used(entry)
    assert not is_used(entry)


def test_what_is_elsewhere_is_not_touched(state: Path, tmp_path: Path) -> None:
    """A run directory that somebody copied keeps its time."""
    copy = tmp_path / "copy"
    copy.mkdir()
    os.utime(copy, (1, 1))
    in_use(copy)
    assert copy.stat().st_mtime == 1
    assert not is_used(copy)


def test_where_nothing_can_be_written_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state directory that is a file: whoever uses it has an error of its own."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file"))
    in_use(tmp_path / "file" / "cache" / "programs" / "x")
