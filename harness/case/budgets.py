"""The budgets that hold for a case: its target's and its model's; a runner has its target's."""

from __future__ import annotations

from harness.case.case import RUNNER, Case
from harness.case.models import find_model
from harness.system.paths import project_root
from harness.target.budget import Budgets, read_model_budgets
from harness.target.loading import load_target


def budgets_of(case: Case) -> Budgets:
    """Of a case; the model's come from ``models/<name>.yaml``, or beside a user's file."""
    if case.model == RUNNER:
        return load_target(case.target).budgets
    source = find_model(case.model)
    beside = source.file.with_suffix(".yaml") if source.file else None
    return load_target(case.target).budgets.merged(
        read_model_budgets(beside or project_root() / "models" / f"{source.name}.yaml")
    )
