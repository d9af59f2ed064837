"""Protects the ratio of exports side by side: both ways in turns, each with its best time."""

from __future__ import annotations

import pytest

from harness.system.progress import silent
from tools.bench import ratios


def test_eight_exports_in_two_processes_are_held_against_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int]] = []
    times = iter([30.0, 20.0, 24.0, 15.0, 26.0, 16.0])

    def exported(models: tuple[str, ...], processes: int) -> float:
        asked.append((len(set(models)), processes))
        return next(times)

    monkeypatch.setattr(ratios, "_exported", exported)
    row = ratios._side_by_side(silent)
    assert asked == [(8, 1), (8, 2)] * 3
    assert (row.ours, row.theirs) == (15.0, 24.0)


def test_the_exporting_command_says_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time from nothing: in a state directory of its own."""
    codes: list[str] = []
    homes: set[str] = set()

    def seconds(argv: list[str], _cwd: object, environment: dict[str, str]) -> float:
        compile(argv[-1], "code", "exec")
        codes.append(argv[-1])
        homes.add(environment["HIL_HOME"])
        return 1.0

    monkeypatch.setattr(ratios, "_seconds", seconds)
    ratios._exported(("add", "mul"), 1)
    ratios._exported(("add", "mul"), 2)
    assert ["lambda *_: 1\n" in codes[0], "lambda *_: 2\n" in codes[1]] == [True, True]
    assert all("for m in ('add', 'mul')" in code for code in codes)
    assert len(homes) == 2
