"""Protects the accuracy as a gate: a program far from the float model is no PASS without a word.

Each test plants one loss into figures that would be right without it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.config.budgets import Budgets
from harness.export.program import OutputAccuracy, Witnessed
from harness.judge.budget_check import Shortfall, accuracy_notes, check_accuracy, describe_witness

GOOD = OutputAccuracy("output0", 100, 38.0, 0.97, 0.01)
SECOND = OutputAccuracy("output1", 100, 30.0, None, None)


def short(
    now: OutputAccuracy, accepted: OutputAccuracy = GOOD, budgets: Budgets | None = None
) -> list[tuple[str, float]]:
    found = check_accuracy((now,), (accepted,), budgets or Budgets())
    return [(each.figure, each.least) for each in found]


@pytest.mark.parametrize(("sqnr_db", "fails"), [(37.0, False), (36.99, True), (50.0, False)])
def test_sqnr_may_fall_by_its_slack(sqnr_db: float, fails: bool) -> None:
    assert short(replace(GOOD, sqnr_db=sqnr_db)) == ([("sqnr_db", 37.0)] if fails else [])


@pytest.mark.parametrize(("top1", "fails"), [(0.95, False), (0.94, True)])
def test_classes_may_fall_by_their_slack(top1: float, fails: bool) -> None:
    assert short(replace(GOOD, top1=top1)) == ([("top1", 0.95)] if fails else [])


@pytest.mark.parametrize(("top1", "fails"), [(0.6667, False), (0.3333, True)])
def test_one_sample_of_few_decides_nothing(top1: float, fails: bool) -> None:
    """Its two largest elements may be a rounding apart; the SQNR sees a real loss."""
    few = replace(GOOD, samples=3, top1=1.0)
    assert bool(short(replace(few, top1=top1), few)) == fails


def test_the_slacks_can_be_set() -> None:
    now = replace(GOOD, sqnr_db=35.5, top1=0.9)
    assert short(now, budgets=Budgets(slack_sqnr_db=3, slack_top1=0.1)) == []
    exact = Budgets(slack_sqnr_db=0, slack_top1=0)
    assert short(replace(GOOD, sqnr_db=37.9), budgets=exact) == [("sqnr_db", 38.0)]


def test_each_output_is_compared_with_its_own() -> None:
    now = (SECOND, replace(GOOD, sqnr_db=31.0))
    found = check_accuracy(now, (GOOD, SECOND), Budgets())
    assert [each.output for each in found] == ["output0"]


def test_an_accepted_figure_that_is_gone_is_not_a_pass() -> None:
    assert [each.measured for each in check_accuracy((), (SECOND,), Budgets())] == [None]
    assert short(replace(GOOD, top1=None)) == [("top1", 0.95)]


def test_where_nothing_was_accepted_nothing_is_compared() -> None:
    assert check_accuracy((replace(GOOD, sqnr_db=-20.0),), (), Budgets()) == ()


@pytest.mark.parametrize(
    ("budgets", "failing"),
    [
        (Budgets(min_sqnr_db=30, min_top1=0.97), []),
        (Budgets(min_sqnr_db=30.5), [("output1", "sqnr_db")]),
        (Budgets(min_sqnr_db=40, min_top1=0.98), [("output0", "sqnr_db"), ("output0", "top1")]),
    ],
)
def test_budgets_hold_for_every_output(budgets: Budgets, failing: list[tuple[str, str]]) -> None:
    found = check_accuracy((GOOD, SECOND), (), budgets)
    assert [(each.output, each.figure) for each in found][: len(failing)] == failing
    assert bool(found) == bool(failing)


def test_the_text_says_from_how_much_to_how_much() -> None:
    fell = Shortfall("output0", "sqnr_db", 33.25, 38.1, 37.1)
    assert fell.describe() == (
        "the SQNR in dB of output0, against the float model, went from 38.1 to 33.25; its slack "
        "allows down to 37.1"
    )
    below = Shortfall("output1", "top1", 0.8, None, 0.9)
    assert below.describe() == (
        "the top-1 agreement of output1, against the float model, is 0.8; the budget min_top1 is "
        "0.9"
    )


@pytest.mark.parametrize(
    ("change", "noted"),
    [
        ({"sqnr_db": 10.0}, False),
        ({"sqnr_db": 9.99}, True),
        ({"clipped": 0.1}, False),
        ({"clipped": 0.11}, True),
    ],
)
def test_low_accuracy_is_noted(change: dict[str, float], noted: bool) -> None:
    notes = accuracy_notes((replace(GOOD, **change), SECOND), None, Budgets())
    assert bool(notes) == noted
    if noted:
        assert notes[0].startswith("low accuracy: output0 has an SQNR of ")
        assert "over 100 samples" in notes[0]


def test_a_budget_that_cannot_be_checked_is_noted() -> None:
    asked = Budgets(min_sqnr_db=10, min_top1=0.5)
    assert accuracy_notes((GOOD,), None, asked) == []
    (without_classes,) = accuracy_notes((SECOND,), None, asked)
    assert without_classes == "min_top1 was not checked: no output has a top-1 agreement"
    assert len(accuracy_notes((), None, asked)) == 2


def test_a_program_that_was_compared_only_as_a_whole_is_noted() -> None:
    """Of others the count is in the record and in `hil why`."""
    (note,) = accuracy_notes((), Witnessed(12, 0, 0), Budgets())
    assert note == (
        "12 of 12 values could not be paired with the program's; outputs were compared as a whole"
    )
    assert accuracy_notes((), Witnessed(12, 11, 1), Budgets()) == []
    assert accuracy_notes((), Witnessed(0, 0, 0), Budgets()) == []
    assert describe_witness(Witnessed(12, 11, 1)) == (
        "1 of 12 values could not be paired with the program's; 11 values of the quantised model "
        "differ by 1 LSB at most"
    )
    assert describe_witness(Witnessed(9, 9, 2)) == (
        "all 9 values of the quantised model differ by 2 LSB at most from the program's"
    )
