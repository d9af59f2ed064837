"""Budgets are read strictly: a misspelt figure would be a gate that never closes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.config.budgets import Budgets, Slack
from harness.config.case_budgets import ModelFile, read_model_file
from harness.config.schema import checked
from harness.core.errors import TargetError


def test_large_figures_have_relative_slack() -> None:
    assert Slack().limit(1_000_000) == 1_005_000
    assert Slack().limit(1000) == 1256


def test_budgets_merge() -> None:
    target = Budgets(limits={"pte_bytes": 100, "elf_ITCM": 7}, slack=Slack(bytes=1, share=0.0))
    merged = target.merged({"limits": {"pte_bytes": 50}})
    assert merged.limits == {"pte_bytes": 50, "elf_ITCM": 7}
    assert merged.slack.bytes == 1


def test_of_two_minima_the_larger_one_holds() -> None:
    target = Budgets(min_sqnr_db=20, min_top1=0.0)
    merged = target.merged({"min_sqnr_db": 10.0, "min_top1": 0.9, "slack_sqnr_db": 3.0})
    assert merged.least_accuracy == {"sqnr_db": 20, "top1": 0.9}
    assert (merged.slack_sqnr_db, merged.slack_top1) == (3.0, 0.02)
    assert target.merged({}).least_accuracy == {"sqnr_db": 20, "top1": 0.0}
    assert Budgets().merged({}).least_accuracy == {}


@pytest.mark.parametrize(
    ("target", "model", "holds"),
    [(None, None, None), (3, None, 3), (3, 2, 3), (3, 4, 4), ("all", 9, "all"), (1, "all", "all")],
)
def test_of_two_delegations_the_stricter_one_holds(
    target: Any, model: Any, holds: int | str | None
) -> None:
    theirs = {} if model is None else {"delegated": model}
    assert Budgets(delegated=target).merged(theirs).delegated == holds


@pytest.mark.parametrize(
    "said", ["delegated: some", "min_sqnr_db: -1", "min_top1: 90", "slack_top1: .nan"]
)
def test_an_accuracy_in_a_file_is_bounded(tmp_path: Path, said: str) -> None:
    (tmp_path / "m.yaml").write_text(f"budgets:\n  {said}\n")
    with pytest.raises(TargetError, match=r"m\.yaml:2: "):
        read_model_file(tmp_path / "m.yaml")


def test_the_models_tolerance_counts_where_it_has_one() -> None:
    target = Budgets(tolerance_lsb=2)
    assert target.merged({}).tolerance_lsb == 2
    assert target.merged({"tolerance_lsb": 0.0}).tolerance_lsb == 0


@pytest.mark.parametrize("said", ["1e9", "16.5", "-1", ".nan", ".inf", '"1"'])
def test_a_tolerance_in_a_file_is_bounded_too(tmp_path: Path, said: str) -> None:
    (tmp_path / "m.yaml").write_text(f"budgets:\n  tolerance_lsb: {said}\n")
    with pytest.raises(TargetError, match=r"m\.yaml:2: "):
        read_model_file(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"pte_byte": 5}, "limits.pte_byte: this name is not allowed here"),
        ({"pte_bytes": -1}, "limits.pte_bytes: it must be at least 0"),
        ({"pte_bytes": "5"}, "limits.pte_bytes: a whole number is wanted"),
    ],
)
def test_budgets_are_strict(limits: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked(Budgets, {"limits": limits})


@pytest.mark.parametrize("name", ["pte_byte", "elf_ITCM_pool", "ticks_set0", "stack_total"])
def test_what_cannot_have_a_budget_is_named(name: str) -> None:
    """Misspelt, or nothing that growth is accepted of."""
    with pytest.raises(ValueError, match=f"'{name}' is not a figure that can have a budget"):
        checked(Budgets, {"limits": {name: 5}})
    with pytest.raises(ValueError, match="is not a figure that can have a budget"):
        checked(Budgets, {"slacks": {name: {}}})


def test_model_budgets_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    assert read_model_file(file) == (ModelFile(), ())
    file.write_text("budgets:\n  limits: {pte_bytes: 4096}\n")
    model, present = read_model_file(file)
    assert (model.budgets.limits, present) == ({"pte_bytes": 4096}, ("limits",))
    file.write_text("budgets:\n  limits:\n    pte_bites: 4096\n")
    with pytest.raises(TargetError, match=r"m\.yaml:3: .*is not a figure that can have a budget"):
        read_model_file(file)
