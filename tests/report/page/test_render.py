"""Protects what the page shows of a case: its console, its place, its figures over nights."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import parse_case
from harness.config.models import find_model
from harness.export.failures import LoweringDiffers
from harness.export.program import OutputAccuracy
from harness.export.request import ExportRequest
from harness.nightly.history.case_state import Standing
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Planned, Row
from harness.nightly.history.row_of_record import row_of
from harness.report.page.render import lines_of, matrix_of, render, trends_of
from harness.run.record import failed_record
from tests.report.page.nights import M55, case, compared, night, row


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


def rendered(folder: Path, of: Row) -> str:
    planned = night(1, [of])
    with closing(open_history(f"sqlite:///{folder / 'history.db'}")) as history:
        history.begin(planned)
        history.append([of])
        return render(compare(history, planned))


def test_the_accuracy_is_shown_and_a_low_one_marked(tmp_path: Path) -> None:
    outputs = (
        OutputAccuracy("output1", 52, 3.5, 0.5, 0.12),
        OutputAccuracy("output0", 52, 38.25, None, 0.0),
    )
    html = rendered(tmp_path, row(1, M55, "add", "MISMATCH", accuracy=outputs))
    low = "<b>Low accuracy</b>, output1 has an SQNR of 3.5 dB, top-1 0.5, 12 % clipped, over 52"
    assert low in html
    assert "<p>output0 has an SQNR of 38.25 dB, 0 % clipped, over 52 samples</p>" in html
    assert '<td class="n">3.5</td>' in html


def test_a_lowering_that_differs_is_shown_whole(tmp_path: Path) -> None:
    """Layer, line, stage and the way round are in its text, which a row must not cut."""
    error = LoweringDiffers(
        ExportRequest(find_model("ds_cnn"), "cortex-m55"),
        ["aten.convolution.default", "aten.hardtanh.default"],
        "backbone.stage3.blocks.11.inverted_residual.project.convolution_and_bounds",
        ("networks_of_ours.py", 1234),
        (123.5, 2.0, (0, 127, 55, 55), 2),
        "ExecuTorch's passes (AtenToCortexMPass)",
        "",
    )
    record = failed_record(parse_case(f"{M55}/ds_cnn"), error)
    assert record.cause is not None
    planned = Planned(record.case.id)
    of = row_of(record, night(1, []), planned, attempt=1, seconds=1.0, harness="h")
    html = rendered(tmp_path, of)
    for said in ("convolution_and_bounds, networks_of_ours.py:1234", "--exporter checkout)</p>"):
        assert said in html
    facts = record.cause.facts or {}
    assert {"layer", "file", "line", "made_by", "tried"} <= set(facts)
