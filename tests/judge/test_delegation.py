"""Protects the list of what an NPU leaves to the CPU, its cost, and the budget for it."""

from __future__ import annotations

import pytest

from harness.config.budgets import Budgets
from harness.export.program import CpuOperator, Delegation
from harness.judge.cost import check_delegation, delegation_note, on_cpu
from harness.log.events import OpTicks

POOL = CpuOperator(
    "avg_pool2d", "pool", "net.py", 74, "Avgpool2d needs stride <= 3, got 4", (3,), (2, 4)
)
SORT = CpuOperator("sort", "", None, None, "", (6,))
BOTH = Delegation(19, (SORT, POOL))


def counted(ticks: dict[int, int]) -> list[OpTicks]:
    return [OpTicks(0, number, "an operator", each) for number, each in ticks.items()]


TICKS = counted({0: 5, 2: 20, 3: 60, 4: 5, 6: 10})


def test_what_costs_most_comes_first_with_its_reason_and_a_way_round() -> None:
    pool, sort = on_cpu(BOTH, TICKS)
    assert pool.describe() == (
        "avg_pool2d (layer pool, net.py:74): 60 % of the CPU's instructions, 85 % with its "
        "conversions; Avgpool2d needs stride <= 3, got 4 (what helps: a stride of at most 3)"
    )
    assert sort.describe() == "sort: 10 % of the CPU's instructions; ExecuTorch gives no reason"
    assert pool.summary()["instead"] == "a stride of at most 3"


def test_without_a_count_there_is_no_share() -> None:
    sort, _ = on_cpu(BOTH, [])
    assert (sort.share, sort.describe()) == (None, "sort: ExecuTorch gives no reason")
    assert delegation_note(BOTH, []) == "2 of 21 operators on the CPU; `hil why` says why"


def test_the_note_has_the_share_of_all() -> None:
    note = delegation_note(BOTH, TICKS)
    assert note == (
        "2 of 21 operators on the CPU: 70 % of its instructions, 95 % with conversions; "
        "`hil why` says why"
    )
    assert delegation_note(Delegation(3, ()), TICKS) == ""


def test_a_conversion_between_two_operators_counts_once() -> None:
    two = Delegation(
        1,
        (
            CpuOperator("a", "", None, None, "", (0,), (1,)),
            CpuOperator("b", "", None, None, "", (2,), (1,)),
        ),
    )
    assert "100 % with conversions" in delegation_note(two, counted({0: 10, 1: 80, 2: 10}))


@pytest.mark.parametrize(
    ("budgets", "fails"),
    [
        (Budgets(), False),
        (Budgets(delegated="all"), True),
        (Budgets(delegated=20), True),
        (Budgets(delegated=19), False),
    ],
)
def test_the_budget(budgets: Budgets, fails: bool) -> None:
    found = check_delegation(BOTH, budgets)
    assert (found is not None) == fails
    if found is not None:
        assert "the NPU has 19 of 21 operators" in found.describe()
        assert "avg_pool2d (layer pool, net.py:74): Avgpool2d needs stride" in found.describe()
    assert check_delegation(None, budgets) is None
    assert check_delegation(Delegation(19, ()), Budgets(delegated="all")) is None
