"""Protects what a page says of a night as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.nightly.history.case_state import CaseState
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.nights import InputDifference
from harness.report.page.render import trends_of
from tests.report.page.nights import U55, case, compared, two_nights


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("nights"))


def test_each_state_is_counted_and_infrastructure_is_no_regression(page: Comparison) -> None:
    assert page.counts == {
        CaseState.NEW: 6,
        CaseState.STILL: 1,
        CaseState.FIXED: 1,
        CaseState.PASSING: 4,
        CaseState.QUARANTINED: 1,
        CaseState.INFRA: 1,
        CaseState.MISSING: 1,
    }
    assert page.verdict == "6 new failures, 1 still failing, 1 in quarantine; of 2 nothing is known"
    in_groups = [one.case for group in page.groups for one in group.cases]
    assert len(in_groups) == len(set(in_groups)) == 7
    assert f"{U55}/resnet8" not in in_groups


def test_a_growth_has_its_figure_and_what_changed(page: Comparison) -> None:
    grown = case(page, f"{U55}/ds_cnn")
    assert grown.state is CaseState.NEW
    assert [str(d) for d in grown.deltas[:2]] == [
        "elf_text 100,000 -> 105,000 (+5,000, +5.0%)",
        "pte_bytes 50,001 -> 50,002 (+1, +0.0%)",
    ]
    old, new = "arm-none-eabi-gcc 12.2.1", "arm-none-eabi-gcc 13.2.0"
    assert grown.changed == [InputDifference("toolchain", old, new)]


def test_a_wrong_target_file_is_named_by_it(page: Comparison) -> None:
    wrong = case(page, "my-board/add")
    assert wrong.changed[0].what == "target" or "target" in {one.what for one in wrong.changed}
    assert "memroy" in str(wrong.row and wrong.row.cause and wrong.row.cause.text)


def test_an_old_night_does_not_know_of_later_ones(tmp_path: Path) -> None:
    """Its page is as it would have been that morning."""
    history, _ = two_nights(tmp_path)
    first = history.night("n1")
    assert first is not None
    page = compare(history, first)
    history.close()
    assert page.before is None
    assert not [one for one in page.cases if one.state is CaseState.FIXED]
    assert all(len(trends_of(one)) == 0 for one in page.cases)
