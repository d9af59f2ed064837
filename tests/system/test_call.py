"""A program that is called: what it printed, and why it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.system.call import CallFailed, call
from tests.processes import ends


def test_both_streams_in_order_and_nothing_on_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In English: Debian's desktops set LANGUAGE, which counts with LC_ALL=C.UTF-8."""
    monkeypatch.setenv("LANGUAGE", "de")
    said = call(["sh", "-c", "pwd; echo 2 >&2; cat; echo $LC_ALL$LANGUAGE"], 10, cwd=tmp_path)
    assert said == f"{tmp_path}\n2\nC.UTF-8\n"
    assert call(["/usr/bin/env"], 10, environment={"A": "1"}) == "A=1\n"


@pytest.mark.parametrize(
    ("script", "why", "output"),
    [
        ("echo a; echo b >&2; exit 3", "b", "a\nb\n"),
        ("exit 3", "status 3", ""),
        ("echo a; sleep 5", "no end after 0.2 s", None),
    ],
)
def test_a_failure_says_its_last_line(script: str, why: str, output: str | None) -> None:
    with pytest.raises(CallFailed) as caught:
        call(["sh", "-c", script], 0.2 if output is None else 10)
    assert (str(caught.value), caught.value.output) == (why, output)


def test_nothing_that_it_started_outlives_it(tmp_path: Path) -> None:
    """As a package manager's downloads: the program that was called waits for another one."""
    script = "sleep 600 & echo $! > pid; wait"
    with pytest.raises(CallFailed, match="no end after"):
        call(["sh", "-c", script], 0.5, cwd=tmp_path)
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (None, 0, "No such file or directory"),
        ("#!/bin/sh", 0o644, "Permission denied"),
        ("#!/nowhere/python", 0o755, "not found"),
        ("\x7fELF of another machine", 0o755, "Exec format error"),
    ],
)
def test_a_program_that_does_not_start(
    content: str | None, mode: int, why: str, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    with pytest.raises(OSError, match="program") as caught:
        call([program], 10)
    assert caught.value.strerror == why
