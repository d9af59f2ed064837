"""Protects what is said of the last time of a phase: it was measured, of that phase, to its end."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from harness.system.progress import timed

FILE = "phase_times.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    return tmp_path


class Interrupted(Exception):
    pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def command(*said: tuple[float, str], interrupted: bool = False) -> list[str]:
    """What a command shows that says these messages, each at its time."""
    shown: list[str] = []
    clock = Clock()
    with suppress(Interrupted), timed(shown.append, clock) as progress:
        for clock.now, message in said:
            progress(message)
        if interrupted:
            raise Interrupted
    return shown


EXPORT = (0, "a: capture"), (3, "a: quantise"), (15, "a: lower"), (20, "a: exported")


@pytest.mark.usefixtures("home")
def test_a_phase_says_what_it_took_the_last_time() -> None:
    assert command(*EXPORT) == ["a: capture", "a: quantise", "a: lower", "a: exported"]
    assert command(*EXPORT) == [
        "a: capture (3 s last time)",
        "a: quantise (12 s last time)",
        "a: lower (5 s last time)",
        "a: exported",
    ]
    command((0, "a: quantise"), (40, "a: lower"))
    assert command((0, "a: quantise")) == ["a: quantise (40 s last time)"]


@pytest.mark.usefixtures("home")
def test_subjects_that_work_side_by_side_have_times_of_their_own() -> None:
    command((0, "a: capture"), (2, "b: capture"), (9, "b: lower"), (10, "a: lower"))
    assert command((0, "a: capture"), (0, "b: capture"), (0, "c: capture")) == [
        "a: capture (10 s last time)",
        "b: capture (7 s last time)",
        "c: capture",
    ]


@pytest.mark.usefixtures("home")
def test_a_count_is_not_a_phase_of_its_own() -> None:
    command((0, "t: building 1/3"), (4, "t: building 2/3"), (6, "t: built"))
    assert command((0, "t: building 3/3")) == ["t: building 3/3 (6 s last time)"]


@pytest.mark.usefixtures("home")
def test_a_phase_that_did_not_end_has_no_time() -> None:
    """Of a failed or interrupted command the phases that ended are kept."""
    command((0, "a: capture"), (3, "a: quantise"), (9, "b: capture"), interrupted=True)
    assert command(*EXPORT)[:2] == ["a: capture (3 s last time)", "a: quantise"]


@pytest.mark.usefixtures("home")
def test_waiting_and_what_has_no_subject_are_not_timed() -> None:
    for _ in range(2):
        shown = command((0, "a: waiting"), (50, "a: capture"), (51, "comparing"), (90, "comparing"))
    assert shown == ["a: waiting", "a: capture", "comparing", "comparing"]


@pytest.mark.usefixtures("home")
def test_less_than_a_second_is_not_told() -> None:
    command((0, "a: capture"), (0.9, "a: lower"))
    assert command((0, "a: capture")) == ["a: capture"]


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"[1]", b"3", b'{"a: capture": "x"}', b'{"a: capture": null}', b"\xff"]
)
def test_a_damaged_file_is_as_none_and_is_written_anew(home: Path, damaged: bytes) -> None:
    (home / FILE).write_bytes(damaged)
    assert command((0, "a: capture"), (3, "a: lower")) == ["a: capture", "a: lower"]
    assert json.loads((home / FILE).read_text()) == {"a: capture": 3.0}


def test_commands_side_by_side_keep_each_others_times(home: Path) -> None:
    with timed(lambda _: None) as progress:
        progress("a: capture")
        command((0, "b: capture"), (5, "b: lower"))
        progress("a: lower")
    assert set(json.loads((home / FILE).read_text())) == {"a: capture", "b: capture"}
    assert [path.name for path in home.iterdir()] == [FILE]


def test_the_file_stays_small(home: Path) -> None:
    command(*((n, f"{n}: x") for n in range(1200)), *((1300, f"{n}: y") for n in range(1200)))
    kept = json.loads((home / FILE).read_text())
    assert list(kept) == [f"{n}: x" for n in range(200, 1200)]


def test_a_state_directory_that_cannot_be_written_costs_the_times_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("HIL_HOME", str(file / "below"))
    assert command((0, "a: capture"), (3, "a: lower")) == ["a: capture", "a: lower"]
