"""Protects what the page shows of a case: its console, its place, its figures over nights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.nightly.history.case_state import Standing
from harness.nightly.history.compare import Comparison
from harness.report.page.render import lines_of, matrix_of, trends_of
from tests.report.page.nights import M55, case, compared, row


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("nights"))


def test_the_line_that_the_cause_names_is_marked(page: Comparison) -> None:
    lines = lines_of(case(page, f"{M55}/ds_cnn"))
    assert [line.number for line in lines] == [5, 6, 7, 8]
    assert [line.number for line in lines if line.marked] == [7]


def test_every_cell_of_the_matrix_is_there_once(page: Comparison) -> None:
    """Also a case without a row, and one with another firmware in the same cell."""
    rows = matrix_of(page.cases).values()
    cells = [one for row in rows for cell in row.values() for one in cell]
    assert sorted(one.case for one in cells) == sorted(one.case for one in page.cases)
    assert max(len(cell) for row in rows for cell in row.values()) == 2


def test_a_trend_has_its_ends_and_marks_bad_nights() -> None:
    rows = tuple(
        replace(
            row(day, M55, "add", "FAULT" if day == 3 else "PASS"),
            metrics={"pte_bytes": 50_000 + day, "elf_text": 1, "ticks_set0": 1_000 * day},
        )
        for day in range(1, 6)
    )
    size, _, ticks, _ = trends_of(Standing(rows[0].case, rows[-1:], rows[:-1]))
    assert (size.values[0], size.values[-1], size.nights) == (50_001, 50_005, 5)
    assert [night for night, _, bad in size.points if bad] == [2]
    assert (
        ticks.text == "instructions over 5 nights: 1,000 to 5,000 ticks, 1,000 at least, "
        "5,000 at most"
    )
    assert trends_of(Standing(rows[0].case, rows[:1])) == []
