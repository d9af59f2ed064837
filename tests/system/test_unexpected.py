"""Whatever exception reaches a face: one sentence, what to do next, and an exit code."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.core.errors import HarnessError, UsageError
from harness.core.verdict import ExitCode
from harness.system.files import DiskError, write_whole
from harness.system.unexpected import Unforeseen, as_harness_error, traceback_of


def caught(error: BaseException) -> HarnessError:
    with pytest.raises(type(error)) as raised:
        raise error
    return as_harness_error(raised.value)


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = UsageError("no")
    assert as_harness_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        RuntimeError("can't start new thread"),
        ImportError("x.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_ran_out(error: BaseException) -> None:
    assert caught(error).kind == "out_of_memory"


def test_memory_that_ran_out_under_another_exception() -> None:
    """numpy says that one should not import it from its own folder."""
    error = ImportError("Error importing numpy")
    error.__cause__ = ImportError("x.so: failed to map segment from shared object")
    assert caught(error).kind == "out_of_memory"


def test_a_file_is_named() -> None:
    said = caught(PermissionError(errno.EACCES, "Permission denied", "/x/y"))
    assert isinstance(said, DiskError)
    assert said.message == "reading or writing a file: Permission denied (/x/y)"


def test_a_full_disk_is_one_without_a_name_of_its_file_and_behind_another_error() -> None:
    error = RuntimeError("cannot write the archive")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    said = caught(error)
    assert isinstance(said, DiskError)
    assert said.message == "reading or writing a file: No space left on device"
    assert "free some space" in (said.hint or "")


def test_anything_else_is_a_defect_of_ours_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(TypeError) as raised:
        write_whole(tmp_path / "f", 3)  # type: ignore[arg-type]
    said = as_harness_error(raised.value)
    assert "Traceback (most recent call last)" in traceback_of(raised.value)
    assert isinstance(said, Unforeseen)
    assert said.exit_code is ExitCode.INFRASTRUCTURE
    assert said.facts["cause"] == "TypeError"
    assert said.facts["place"].startswith("harness/system/files.py:")
    assert "--debug" in (said.hint or "")


def test_an_exception_without_words() -> None:
    assert caught(KeyError()).message == "unforeseen KeyError (at )"
