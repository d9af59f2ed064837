"""Protects what a user sees while a command works: what, since when, and for how long yet."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from harness.cli.progress import Step, progress_shown


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def said() -> Callable[[float, str], str]:
    clock = Clock()
    step = Step("starting", clock)

    def at(seconds: float, message: str) -> str:
        clock.now = seconds
        if message:
            step.say(message)
        return str(step)

    return at


def test_what_is_quickly_done_shows_no_time(said: Callable[[float, str], str]) -> None:
    assert said(1, "") == "starting"
    assert said(50, "a/b: simulating") == "a/b: simulating"


def test_the_time_goes_on_while_nothing_is_said(said: Callable[[float, str], str]) -> None:
    said(10, "exporting")
    assert said(15, "") == "exporting (5 s)"
    assert said(250, "") == "exporting (4 min)"
    assert said(7510, "") == "exporting (2 h 05 min)"


def test_a_count_says_how_long_yet_by_what_this_step_took(
    said: Callable[[float, str], str],
) -> None:
    """What was there before the first count (ninja's, of a build that is gone on with) took none
    of this time: 10 in 20 s leaves 40 s for 20, not 100 of 120."""
    said(100, "suite 100/130")
    assert said(120, "suite 110/130") == "suite 110/130 (20 s, about 40 s left)"
    assert said(130, "") == "suite 110/130 (30 s, about 30 s left)"
    assert said(900, "").endswith("about 1 s left)")  # late, and never below nothing
    assert said(901, "suite 130/130") == "suite 130/130 (13 min)"


def test_another_step_and_a_count_that_begins_again_have_times_of_their_own(
    said: Callable[[float, str], str],
) -> None:
    said(0, "a: building [5/10]")
    said(10, "a: building [9/10]")
    assert said(11, "b: building [2/10]") == "b: building [2/10]"
    said(20, "b: building [9/10]")
    assert said(21, "b: building [1/10]") == "b: building [1/10]"


def test_a_terminal_shows_the_step_and_a_log_each_step_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_shown(as_json=False) as progress:
        for count in range(1, 4):
            progress(f"suite {count}/3")
    assert capsys.readouterr().err == "hil: suite\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_shown(as_json=False) as progress:
        progress("suite 1/3")
    assert "suite 1/3" in screen.getvalue()


def test_json_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_shown(as_json=True) as progress:
        progress("exporting")
    assert capsys.readouterr() == ("", "")
