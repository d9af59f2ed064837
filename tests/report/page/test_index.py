"""Protects the table of nights: every case in each of them, and links that lead somewhere."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from harness.nightly.history.case_state import CaseState
from harness.report.page.render import courses, write_index

from .nights import EVIL, M55, night, row, two_nights


def test_how_each_case_ended_in_each_night() -> None:
    """New, still failing, fixed, missing, not planned; what failed most comes first."""
    rows = [
        [row(1, M55, "add"), row(1, M55, "mul")],
        [row(2, M55, "add", "FAULT"), row(2, M55, "mul")],
        [row(3, M55, "add", "FAULT"), row(3, M55, "late")],
        [row(4, M55, "add"), row(4, M55, "late")],
    ]
    nights = [night(day, each) for day, each in enumerate(rows, 1)]
    nights[3] = replace(nights[3], plan=(*nights[3].plan, *nights[1].plan[1:]))
    found = courses(nights, [each for day in rows for each in day])
    states = {c.case: [None if cell is None else cell.state for cell in c.cells] for c in found}
    assert states == {
        f"{M55}/add": [CaseState.PASSING, CaseState.NEW, CaseState.STILL, CaseState.FIXED],
        f"{M55}/mul": [CaseState.PASSING, CaseState.PASSING, None, CaseState.MISSING],
        f"{M55}/late": [None, None, CaseState.PASSING, CaseState.PASSING],
    }
    assert (found[0].case, found[0].bad) == (f"{M55}/add", 2)


def test_an_alarm_is_a_failure_in_its_nights_alone() -> None:
    ticks = (1000, 1000, 1000, 2000, 2000, 1000)
    rows = [row(day, M55, "add", metrics={"ticks_set0": n}) for day, n in enumerate(ticks, 1)]
    nights = [
        replace(night(day, [each]), alarms={"instructions": 0.05})
        for day, each in enumerate(rows, 1)
    ]
    (found,) = courses(nights, rows)
    states = [None if cell is None else cell.state for cell in found.cells]
    assert states == [*[CaseState.PASSING] * 3, CaseState.NEW, CaseState.STILL, CaseState.FIXED]


def test_the_page_and_the_night_beside_it(tmp_path: Path) -> None:
    history, newest = two_nights(tmp_path)
    with closing(history):
        page = write_index(history, newest, tmp_path / "pages")
    text = page.read_text()
    assert sorted(each.name for each in page.parent.iterdir()) == ["index.html", "night-n2.html"]
    assert text.count("<a href=") == 1
    assert '<a href="night-n2.html">03-02</a>' in text
    assert 'title="new: MISMATCH outputs_differ"' in text
    assert EVIL not in text
