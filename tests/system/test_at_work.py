"""What a killed run leaves with a name is cleared by the next one, and nothing of a living one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.system.at_work import at_work

OTHER = """
import os, sys, time
from pathlib import Path
from harness.system.at_work import at_work
with at_work(Path(sys.argv[1])):
    os.mkfifo(sys.argv[1] + "/fifo")
    print("there", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "at_work"


@pytest.fixture
def other(tmp_path: Path):  # type: ignore[no-untyped-def]
    (tmp_path / "theirs").mkdir()
    argv = [sys.executable, "-c", OTHER, str(tmp_path / "theirs")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"there\n"
        yield child
        child.kill()


def test_what_the_dead_left_is_cleared(
    tmp_path: Path, home: Path, other: subprocess.Popen[bytes]
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "output.bin").write_bytes(b"kept")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as monitor:
        os.chdir(theirs)  # the path may be too long for a socket
        monitor.bind("monitor")
        os.chdir(tmp_path)
    other.send_signal(signal.SIGKILL)
    other.wait()
    with at_work(tmp_path / "ours"):
        assert [path.name for path in theirs.iterdir()] == ["output.bin"]
        assert len(list(home.iterdir())) == 1
    assert list(home.iterdir()) == []


def test_what_the_living_use_stays(
    tmp_path: Path, home: Path, other: subprocess.Popen[bytes]
) -> None:
    with at_work(tmp_path / "ours"):
        assert (tmp_path / "theirs" / "fifo").is_fifo()
        assert len(list(home.iterdir())) == 2


def test_an_entry_that_names_nothing_is_dropped(tmp_path: Path, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "empty").touch()
    (home / "gone").write_text(str(tmp_path / "never was"))
    (home / "folder").mkdir()
    with at_work(tmp_path):
        assert {"empty", "gone"}.isdisjoint(path.name for path in home.iterdir())
