"""What the one check protects: each state is provoked, small steps cannot add up."""

from __future__ import annotations

import pytest

from harness.config.budgets import Budgets, Slack
from harness.judge.budget_check import CheckedFigure, FigureState, check

NO_BUDGETS = Budgets()


def only(
    measured: int | None, accepted: int | None, budgets: Budgets = NO_BUDGETS
) -> CheckedFigure:
    """The answer for one figure."""
    figures = {} if measured is None else {"pte_bytes": measured}
    (held,) = check(("run",), figures, {} if accepted is None else {"pte_bytes": accepted}, budgets)
    return held


@pytest.mark.parametrize(
    ("measured", "accepted", "most", "state", "says"),
    [
        (
            1256,
            1000,
            None,
            "ok",
            "pte_bytes grew from 1000 to 1256 bytes (+256, allowed up to 1256)",
        ),
        (
            1257,
            1000,
            None,
            "grown",
            "pte_bytes grew from 1000 to 1257 bytes (+257, allowed up to 1256)",
        ),
        (744, 1000, None, "ok", "went from 1000 to 744 bytes (-256"),
        (743, 1000, None, "shrank", "went from 1000 to 743 bytes (-257"),
        (9000, None, None, "new", "pte_bytes is 9000 bytes; nothing is accepted yet"),
        (1000, None, 1000, "new", "nothing is accepted yet"),
        (1000, 1000, 900, "over_limit", "pte_bytes is 1000 bytes, 100 over its limit of 900"),
        (1000, None, 900, "over_limit", "100 over its limit of 900"),
        (None, 1000, None, "not_measured", "pte_bytes could not be measured"),
        (None, None, 900, "not_measured", "could not be measured"),
    ],
)
def test_each_state(
    measured: int | None, accepted: int | None, most: int | None, state: str, says: str
) -> None:
    budgets = Budgets(limits={} if most is None else {"pte_bytes": most})
    held = only(measured, accepted, budgets)
    assert held.state is FigureState(state)
    assert held.failed == (state in ("grown", "over_limit", "not_measured"))
    assert says in held.describe()


@pytest.mark.parametrize(("accepted", "allowed"), [(0, 256), (1000, 1256), (100_000, 100_500)])
def test_the_slack_is_the_larger_of_256_bytes_and_half_a_percent(
    accepted: int, allowed: int
) -> None:
    assert only(allowed, accepted).state == "ok"
    assert only(allowed + 1, accepted).state == "grown"


def test_a_budget_has_its_own_slack() -> None:
    strict = Budgets(slacks={"pte_bytes": Slack(bytes=0, share=0.0)})
    assert only(1001, 1000, strict).state == "grown"
    assert only(1000, 1000, strict).state == "ok"


def test_small_steps_are_caught() -> None:
    """Each run is compared with what was accepted, so 100 B a day fail on the third day."""
    outcomes = [only(1000 + 100 * day, 1000).failed for day in range(5)]
    assert outcomes == [False, False, False, True, True]


def test_a_stage_is_asked_only_for_what_it_measures() -> None:
    """A program's gate cannot know the firmware, nor a run what only the .pte's anatomy tells."""
    accepted = {"pte_bytes": 5, "planned_bytes": 5, "elf_text": 5, "temp_allocator": 5}
    budgets = Budgets(limits={"npu_scratch_bytes": 1, "elf_ITCM": 1, "stack_high_water": 1})

    def asked(stage: str) -> set[str]:
        found = check((stage,), {}, accepted, budgets)  # type: ignore[arg-type]
        assert all(f.state == "not_measured" for f in found)
        return {f.figure for f in found}

    assert asked("program") == {"pte_bytes", "planned_bytes", "npu_scratch_bytes"}
    assert asked("firmware") == {"elf_text", "elf_ITCM"}
    assert asked("run") == {
        "pte_bytes",
        "elf_text",
        "elf_ITCM",
        "temp_allocator",
        "stack_high_water",
    }


def test_time_and_the_size_of_a_pool_are_held_against_nothing() -> None:
    figures = {"ticks_set0": 9, "temp_allocator_total": 9, "temp_allocator": 9}
    assert [f.figure for f in check(("run",), figures, {}, NO_BUDGETS)] == ["temp_allocator"]


def test_what_a_strangers_runner_prints_is_held_too() -> None:
    (held,) = check(("run",), {"ETDump_outputs_size": 900}, {"ETDump_outputs_size": 1}, NO_BUDGETS)
    assert held.state == "grown"
