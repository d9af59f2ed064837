"""Protects what is said of a figure over nights: a step that holds, when, by how much, with which
commits; an alarm that is raised by it and by nothing else, and lasts until somebody acts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, median_low

import numpy as np
import pytest

from harness.core.verdict import Verdict
from harness.nightly.history.case_state import CaseState
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.nights import Origin, Row
from harness.nightly.history.steps import Step, _levels, steps_of, with_alarms
from harness.nightly.history.store import History
from tests.late import Late

from .made import KNOWN, TARGET, night, row

ruptures = Late("ruptures")

ADD = f"{TARGET}/add"
FIVE = {"instructions": 0.05}


def course(*ticks: int, **more: object) -> list[Row]:
    return [
        row(day, metrics={"ticks_set0": value}, origin=Origin("main", f"c{day}"), **more)
        for day, value in enumerate(ticks, 1)
    ]


def test_a_step_that_holds_has_its_night_size_and_commits() -> None:
    (step,) = steps_of(course(1000, 1000, 1000, 1200, 1200))
    assert str(step) == "instructions 1,000 -> 1,200 (+20.0%) since the night n4"
    assert [(one.what, one.before, one.after) for one in step.differences] == [
        ("repository", "c3", "c4")
    ]
    assert len(step.rows) == 2


@pytest.mark.parametrize(
    ("ticks", "nights"),
    [
        pytest.param((1000, 1000, 1000, 1000), [], id="nothing happened"),
        pytest.param((1000, 1000, 1000, 1005, 1005), [], id="half a percent"),
        pytest.param((1000, 1000, 9000, 1000, 1000), [], id="one night alone"),
        pytest.param((1000, 9000, 1000, 1000, 2000, 1000), [], id="two nights alone"),
        pytest.param((1000, 9000, 1000, 2000, 2000), ["n4"], id="one alone, then a step"),
        pytest.param((1000, 1000, 1000, 2000), ["n4"], id="the last night may hold"),
        pytest.param((1000, 2000, 2000, 1000, 1000), ["n2", "n4"], id="up and down"),
        pytest.param((0, 0, 0, 500, 500), ["n4"], id="from nothing"),
        pytest.param((1000,), [], id="one night"),
        pytest.param((), [], id="none"),
    ],
)
def test_where_steps_are(ticks: Sequence[int], nights: Sequence[str]) -> None:
    assert [step.first.night for step in steps_of(course(*ticks))] == nights


def test_noise_is_no_step_and_a_step_in_noise_is_found() -> None:
    """200 courses of 30 nights, with a deviation of 2 %; then with a step of 20 %."""
    made = random.Random(1)

    def noisy(after: float) -> list[Step]:
        levels = [1e6] * 15 + [after] * 15
        return steps_of(course(*(round(made.gauss(level, 2e4)) for level in levels)))

    quiet = [noisy(1e6) for _ in range(200)]
    assert sum(any(len(s.rows) > 1 for s in steps) for steps in quiet) <= 10
    found = [noisy(1.2e6) for _ in range(200)]
    assert sum("n16" in {step.first.night for step in steps} for steps in found) >= 195


def test_levels_are_those_of_the_library() -> None:
    """100 random courses, of nights in which nothing, something or much changes."""
    made = random.Random(2)
    for _ in range(100):
        level, values = 1e6, []
        for _ in range(made.randrange(2, 32)):
            level *= made.choice((1.0, 1.0, 1.0, 0.9, 1.2))
            values.append(made.gauss(level, 2e4))
        noise = median_low(abs(b - a) for a, b in pairwise(values)) * 1.4826 / 2**0.5
        signal = np.array(values).reshape(-1, 1) / max(noise, median(values) * 0.001)
        search = ruptures.KernelCPD(kernel="linear", min_size=1).fit(signal)
        assert [end for _, end in _levels(values)] == search.predict(pen=16)


def test_a_run_that_did_not_end_measures_nothing() -> None:
    rows = course(1000, 1000, 1000, 20, 20)
    rows[3:] = [replace(each, verdict=Verdict.FAULT) for each in rows[3:]]
    assert steps_of(rows) == []


def alarmed(rows: Sequence[Row], most: float = 0.05) -> list[str]:
    return [each.night for each in with_alarms(rows, {"instructions": most}) if each.bad]


def test_an_alarm_is_raised_in_the_first_night_and_lasts() -> None:
    rows = course(1000, 1000, 1000, 1100)
    assert alarmed(rows) == ["n4"]
    assert alarmed(course(1000, 1000, 1000, 1100, 1100, 1100)) == ["n4", "n5", "n6"]
    assert alarmed(rows, 0.2) == []
    last = with_alarms(rows, FIVE)[-1]
    assert last.verdict is Verdict.OVER_BUDGET
    assert last.cause is not None
    assert last.cause.text == (
        "instructions 1,000 -> 1,100 (+10.0%) since the night n4; the suite's alarm is 5%"
    )


def test_small_steps_add_up() -> None:
    assert alarmed(course(*[1000] * 4, *[1030] * 4, *[1060] * 4)) == ["n9", "n10", "n11", "n12"]


def test_what_got_better_or_went_back_is_no_alarm() -> None:
    assert alarmed(course(1000, 1000, 1000, 500, 500)) == []
    assert alarmed(course(1000, 1000, 1100, 1100, 1000, 1000)) == []


def test_a_new_reference_accepts_the_level() -> None:
    accepted = replace(KNOWN, reference="r2")
    rows = course(1000, 1000, 1000, 1100, 1100)
    rows += [replace(each, identity=accepted) for each in course(*[0] * 5, 1100, 1100)[5:]]
    assert alarmed(rows) == []
    rows += [replace(each, identity=accepted) for each in course(*[0] * 7, 1300)[7:]]
    assert alarmed(rows) == ["n8"]


def test_a_failure_keeps_its_own_cause() -> None:
    rows = course(1000, 1000, 1000, 1100)
    rows[-1] = row(4, "MISMATCH", metrics=rows[-1].metrics)
    last = with_alarms(rows, FIVE)[-1]
    assert last is rows[-1]


def nights_of(history: History, *ticks: int, **more: object) -> Comparison:
    for day, each in enumerate(course(*ticks), 1):
        history.begin(begun := night(day, ADD, **more))
        history.append([each])
    return compare(history, begun)


def test_a_night_fails_by_its_alarm(history: History) -> None:
    """New in its first night, still failing in the next, fixed when it is over; and without the
    alarm all of it passes."""
    page = nights_of(history, 1000, 1000, 1000, 1100, alarms=FIVE)
    assert (page.cases[0].state, int(page.code)) == (CaseState.NEW, 1)
    page = nights_of(history, 1000, 1000, 1000, 1100, 1100, alarms=FIVE)
    assert (page.cases[0].state, int(page.code)) == (CaseState.STILL, 1)
    assert [str(step) for _, step in page.held] == [
        "instructions 1,000 -> 1,100 (+10.0%) since the night n4"
    ]
    page = nights_of(history, 1000, 1000, 1000, 1100, 1100, 1000, alarms=FIVE)
    assert (page.cases[0].state, int(page.code)) == (CaseState.FIXED, 0)
    page = nights_of(history, *[1000] * 3, 1100, 1100, 1000, 1100, alarms={})
    assert (page.cases[0].state, int(page.code)) == (CaseState.PASSING, 0)


def test_an_alarm_in_quarantine_does_not_count(history: History) -> None:
    for day, each in enumerate(course(1000, 1000, 1000, 1100, quarantined="until then"), 1):
        history.begin(begun := night(day, ADD, alarms=FIVE))
        history.append([each])
    page = compare(history, begun)
    assert (page.cases[0].state, int(page.code)) == (CaseState.QUARANTINED, 0)
