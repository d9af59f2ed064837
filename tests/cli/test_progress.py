"""Protects what a user sees while a command works: what, since when, and for how long yet."""

from __future__ import annotations

import io
import json
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.text import Text

from harness.cli.verb import JSON_VERSION, Answer, echo, progress_shown, status_line, terminal, verb
from harness.core.verdict import ExitCode
from harness.report.safe_console import Terminal


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(*said: tuple[float, str]) -> str:
    """The status line after these messages, each at its time."""
    clock, screen = Clock(), io.StringIO()
    with status_line(Terminal(file=screen, force_terminal=True, width=100), clock) as say:
        for clock.now, message in said:
            say(message)
    return Text.from_ansi(screen.getvalue()).plain


def stderr_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_count_says_how_long_yet_by_what_this_step_took() -> None:
    """What was there before the first count (ninja's, of a build that is gone on with) took none
    of this time: 10 in 20 s leaves 40 s for 20, not 100 of 120."""
    counted = (100, "suite 100/130"), (120, "suite 110/130")
    assert "suite 110/130 0:00:20 0:00:40 left" in shown((50, "exporting"), *counted)


def test_another_step_has_a_time_of_its_own() -> None:
    said = shown((100, "suite 1/3"), (200, "suite 2/3"), (210, "comparing"), (215, "comparing"))
    assert "comparing 0:00:05" in said
    assert "left" not in said.rpartition("comparing")[2]


def test_a_log_has_each_long_step_once_and_no_short_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printing = threading.Semaphore(0)

    def printed(text: str) -> str:
        printing.release()
        return text

    with monkeypatch.context() as patch, progress_shown() as progress:
        patch.setattr("harness.cli.verb.LONG_S", 3600.0)
        progress("ds_cnn: exporting")
        patch.setattr("harness.cli.verb.LONG_S", 0.0)
        patch.setattr("harness.cli.verb.plain", printed)
        for count in range(1, 4):
            progress(f"ds_cnn: suite {count}/3")
        assert printing.acquire(timeout=60)
        progress("ds_cnn: suite 3/3")
        progress("resnet8: exported")
        patch.setattr("harness.cli.verb.LONG_S", 3600.0)
        progress("ds_cnn: simulating")
    assert capsys.readouterr().err == "hil: ds_cnn: suite\n"


def test_a_terminal_shows_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = stderr_at_a_terminal(monkeypatch)
    with progress_shown() as progress:
        progress("suite 1/3")
    assert "suite 1/3" in screen.getvalue()


def test_json_is_all_that_is_printed() -> None:
    """What a verb prints for people is printed without it only."""

    @click.command()
    @verb
    def talkative() -> Answer:
        with progress_shown() as progress:
            progress("exporting")
        echo("a line")
        echo("a warning", err=True)
        terminal().print("a table")
        return {"found": 1}, ExitCode.PASSED

    for_people = CliRunner().invoke(talkative).output
    assert all(text in for_people for text in ("a line", "a warning", "a table"))
    answer = CliRunner().invoke(talkative, ["--json"]).output
    assert json.loads(answer) == {"version": JSON_VERSION, "found": 1}


def test_a_terminal_and_a_log_say_what_a_phase_took_the_last_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "phase_times.json").write_text(
        '{"ds_cnn for cortex-m55: exporting, quantise": 12.3}'
    )
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    message = "ds_cnn for cortex-m55: exporting, quantise"
    monkeypatch.setattr("harness.cli.verb.LONG_S", 0.0)
    printing = threading.Semaphore(0)

    def printed(text: str) -> str:
        printing.release()
        return text

    with monkeypatch.context() as patch, progress_shown() as progress:
        patch.setattr("harness.cli.verb.plain", printed)
        progress(message)
        assert printing.acquire(timeout=60)
    assert capsys.readouterr().err == f"hil: {message} (12 s last time)\n"
    screen = stderr_at_a_terminal(monkeypatch)
    with progress_shown() as progress:
        progress(message)
    assert f"{message} (12 s last time)" in screen.getvalue()
