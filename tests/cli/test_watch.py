"""Protects --watch: a change of the file, or of what it imports, is another run; Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def watching(tmp_path: Path, shared_hil_home: str) -> Iterator[subprocess.Popen[str]]:
    """Files that do not parse: each run ends before anything is exported."""
    (tmp_path / "model.py").write_text("def (:\n")
    argv = [sys.executable, "-m", "harness", "run", "host", str(tmp_path / "model.py"), "--watch"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as at a terminal
    ) as it:  # fmt: skip
        yield it
        it.kill()


def until(watching: subprocess.Popen[str], words: str) -> str:
    assert watching.stdout is not None
    said = ""
    for line in watching.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(said)


def test_a_change_is_another_run(watching: subprocess.Popen[str], tmp_path: Path) -> None:
    assert "model.py:1 is not valid Python" in until(watching, "watching model.py")
    (tmp_path / "layers.py").write_text("")
    (tmp_path / "model.py").write_text("import layers\n")
    assert "does not define ModelUnderTest" in until(watching, "watching layers.py, model.py")
    (tmp_path / "layers.py").write_text("\n\ndef (:\n")
    assert "layers.py:3 is not valid Python" in until(watching, "watching model.py")
    watching.send_signal(signal.SIGINT)
    assert watching.wait() == 130
