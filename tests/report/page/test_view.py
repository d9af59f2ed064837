"""Protects what the page of a night says: what is new, what failures share, and what is no
regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.nightly.history.compare import Standing, State
from harness.nightly.history.model import Difference
from harness.report.page.groups import grouped
from harness.report.page.view import CaseView, Page, page_of, trends

from .nights import CONV, KNOWN, LINEAR, M55, PAD, U55, U85, many, row, two_nights


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    history, night = two_nights(tmp_path_factory.mktemp("nights"))
    yield page_of(history, night)
    history.close()


def case(page: Page, name: str) -> CaseView:
    return next(one for one in page.cases if one.case == name)


def test_each_state_is_counted_and_infrastructure_is_no_regression(page: Page) -> None:
    counts = {state: number for state, _, number in page.counts}
    assert counts == {
        State.NEW: 6,
        State.STILL: 1,
        State.FIXED: 1,
        State.PASSING: 4,
        State.QUARANTINED: 1,
        State.INFRA: 1,
        State.MISSING: 1,
    }
    assert page.verdict == "6 new failures, 1 still failing; of 2 nothing is known"
    in_groups = [one.case for group in page.groups for one in group.cases]
    assert len(in_groups) == len(set(in_groups)) == 7
    assert f"{U55}/resnet8" not in in_groups


def test_the_planted_kernel_bug_is_one_group(page: Page) -> None:
    """By the one operator that all four have, and nothing that passed on that target."""
    first = page.groups[0]
    assert first.what == f"operator {PAD}"
    assert {one.case for one in first.cases} == {
        f"{M55}/{model}" for model in ("ds_cnn", "resnet8", "mobilenet", "padded")
    }
    changed = {one.what for one in first.cases[0].changed}
    assert changed == {"sources", "firmware"}
    assert first.changed == [Difference("sources", "a" * 40, "b" * 40)]
    assert first.cases[0].since is not None
    assert first.cases[0].since.first.night == "n2"


def test_a_growth_has_its_figure_and_what_changed(page: Page) -> None:
    grown = case(page, f"{U55}/ds_cnn")
    assert grown.state is State.NEW
    assert [(d.name, d.change) for d in grown.deltas] == [("elf_text", 5000), ("pte_bytes", 1)]
    old, new = "arm-none-eabi-gcc 12.2.1", "arm-none-eabi-gcc 13.2.0"
    assert grown.changed == [Difference("toolchain", old, new)]


def test_a_wrong_target_file_is_named_by_it(page: Page) -> None:
    wrong = case(page, "my-board/add")
    assert wrong.changed[0].what == "target" or "target" in {one.what for one in wrong.changed}
    assert "memroy" in str(wrong.row and wrong.row.cause and wrong.row.cause.text)


def test_a_failure_that_names_its_operator(page: Page) -> None:
    still = case(page, f"{U85}/resnet8")
    assert still.state is State.STILL
    assert [g.what for g in page.groups if still in g.cases] == ["operator CONV_2D"]


def test_the_line_that_the_cause_names_is_marked(page: Page) -> None:
    lines = case(page, f"{M55}/ds_cnn").lines
    assert [line.number for line in lines] == [5, 6, 7, 8]
    assert [line.number for line in lines if line.marked] == [7]


def test_every_cell_of_the_matrix_is_there_once(page: Page) -> None:
    """Also a case without a row, and one with another firmware in the same cell."""
    cells = [one for _, row in page.matrix.rows for cell in row for one in cell]
    assert sorted(one.case for one in cells) == sorted(one.case for one in page.cases)
    assert max(len(cell) for _, row in page.matrix.rows for cell in row) == 2


def failing(model: str, operators: tuple[str, ...], kind: str = "MISMATCH") -> Standing:
    bad = row(2, M55, model, kind, operators=operators)
    return Standing(bad.case, (bad,))


def test_an_operator_that_passes_elsewhere_on_the_target_is_not_accused() -> None:
    """Nor one that a single failure has."""
    failures = [failing("a", (PAD, CONV)), failing("b", (PAD,)), failing("c", (LINEAR,))]
    innocent = row(2, M55, "d", operators=(PAD,))
    assert [g.what for g in grouped(failures, [innocent])] == ["MISMATCH"]
    assert [g.what for g in grouped(failures, [])] == [f"operator {PAD}", "MISMATCH"]
    elsewhere = replace(innocent, target="host")
    assert grouped(failures, [elsewhere])[0].what == f"operator {PAD}"


def test_operators_that_cannot_be_told_apart_are_all_named() -> None:
    """No one of them is accused alone."""
    failures = [failing("a", (PAD, CONV)), failing("b", (PAD, CONV, LINEAR))]
    (group,) = grouped(failures, [])
    assert group.what == f"operators {CONV}, {PAD}"


def test_verdicts_of_other_kinds_are_not_one_cause() -> None:
    failures = [failing("a", (PAD,)), failing("b", (PAD,), "FAULT")]
    assert [len(g.cases) for g in grouped(failures, [])] == [1, 1]
    assert grouped([], []) == []


def test_what_changed_for_several_is_their_cause(tmp_path: Path) -> None:
    """The input, not what is made of it."""
    history, night = many(tmp_path, 40, 3)
    for name in ("board-0/model_0", "board-5/model_1"):
        rows = history.of_case(name)
        assert rows
    page = page_of(history, night)
    history.close()
    assert page.groups
    assert all(group.what == "MISMATCH outputs_differ" for group in page.groups)
    new = replace(KNOWN, toolchain="gcc 13", firmware="0" * 64)
    failures = []
    for model in ("a", "b"):
        bad = row(2, M55, model, "FAULT", identity=new, operators=())
        failures.append(Standing(bad.case, (bad,), (row(1, M55, model),)))
    (group,) = grouped(failures, [])
    assert group.what == "toolchain changed"
    assert "gcc 13" in group.why


def test_a_trend_has_its_ends_and_marks_bad_nights() -> None:
    rows = [row(day, M55, "add", "FAULT" if day == 3 else "PASS") for day in range(1, 6)]
    size, _, ticks, _ = trends(rows)
    assert (size.first, size.last, size.nights) == (50_001, 50_005, 5)
    assert len(size.line.split()) == 5
    assert len(size.bad) == 1
    assert (
        ticks.said == "instructions over 5 nights: 1,000 to 5,000 ticks, 1,000 at least, "
        "5,000 at most"
    )
    assert trends(rows[:1]) == ()
    flat = [replace(one, metrics={"pte_bytes": 7}) for one in rows]
    assert trends(flat)[0].least == trends(flat)[0].most == 7


def test_an_old_night_does_not_know_of_later_ones(tmp_path: Path) -> None:
    """Its page is as it would have been that morning."""
    history, _ = two_nights(tmp_path)
    first = history.night("n1")
    assert first is not None
    page = page_of(history, first)
    history.close()
    assert page.earlier is None
    assert not [one for one in page.cases if one.state is State.FIXED]
    assert all(len(one.trends) == 0 for one in page.cases)


def test_an_input_that_a_failed_run_did_not_reach_has_not_changed() -> None:
    """A broken export has no program, and so no exporter's version: "" is not a new value."""
    failed = replace(
        row(2, M55, "ds_cnn", "EXPORT_ERROR"), operators=(), identity=replace(KNOWN, exporter="")
    )
    failing = Standing(failed.case, (failed,), (row(1, M55, "ds_cnn"),))
    (group,) = grouped([failing, replace(failing, case="another")], [])
    assert group.what.startswith("EXPORT_ERROR")
