"""Nothing that libraries print while captured reaches the user, and nothing breaks after."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import warnings

import pytest

from harness.export.quiet import captured


def test_streams_descriptors_loggers_and_warnings_are_captured(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    ctypes.CDLL(None).fflush(None)  # what the tests before this one left in libc's buffer
    capfd.readouterr()
    with captured() as log:
        print("from python")
        os.write(2, b"from C++\n")
        warnings.warn("from a warning", stacklevel=1)
        handler = logging.StreamHandler()
        handler.emit(logging.makeLogRecord({"msg": "from a logger"}))
        text = log.text()
    for source in ("python", "C++", "a warning", "a logger"):
        assert f"from {source}" in text
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_a_handler_made_inside_still_works_outside(capfd: pytest.CaptureFixture[str]) -> None:
    """torch installs its log handlers on import; they must not hold a closed stream."""
    with captured():
        handler = logging.StreamHandler()
    handler.emit(logging.makeLogRecord({"msg": "later"}))
    assert capfd.readouterr().err == "later\n"


def test_the_streams_come_back_after_an_error() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(KeyError), captured():
        raise KeyError
    assert (sys.stdout, sys.stderr) == before


def test_the_tail_is_the_last_lines() -> None:
    with captured() as log:
        print("1\n2\n3")
        assert log.tail(2) == "2\n3"


def test_what_waits_in_a_c_buffer_is_captured_too() -> None:
    """printf into a pipe is written at the process's end, when nobody captures any more."""
    program = (
        "import ctypes\nfrom harness.export.quiet import captured\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.printf(b'before ')\n"
        "with captured() as log:\n"
        "    libc.printf(b'from a library')\n"
        "print('after')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},  # no buffers with it
    )  # fmt: skip
    assert done.stdout == b"before after\n"
