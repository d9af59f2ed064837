"""The budgets that hold for a case: its target's and its model's; a runner has its target's.

The tolerance is one of them. At a desk ``--tolerance`` may replace the one in the files. In CI it
may only be stricter: what a test is allowed to get wrong has to be reviewed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.config import strict_yaml
from harness.config.budgets import MOST_TOLERANCE_LSB, Budgets
from harness.config.case import RUNNER, Case
from harness.config.loading import load_target
from harness.config.models import CalibrationType, Layout, Quantization, find_model
from harness.config.schema import Data, checked_document
from harness.core.errors import UsageError
from harness.system.paths import data_root
from harness.system.settings import in_ci, settings

_EXAMPLE = "for example `budgets: {limits: {pte_bytes: 0x4000}}`"


@dataclass(frozen=True, kw_only=True)
class ModelFile(Data):
    """A model's YAML file."""

    budgets: Budgets = field(default_factory=Budgets)
    calibration: CalibrationType = CalibrationType.FLOAT64
    quantization: Quantization = Quantization.A8W8
    layout: Layout | None = None  # as the catalogue has it


def budgets_of(case: Case) -> Budgets:
    """Return the budgets of a case.

    A catalogue model's are in ``<name>.yaml`` in the folder that the setting ``budgets`` names
    (default: ``budgets`` next to the settings); a user's model file has them next to it."""
    if case.model == RUNNER:
        return load_target(case.target).budgets
    model, present = read_model_file(_file_of(case.model))
    theirs = {name: getattr(model.budgets, name) for name in present}
    return load_target(case.target).budgets.merged(theirs)


def settings_of(model: str) -> ModelFile:
    """Read the model's YAML file. Raises TargetError."""
    return read_model_file(_file_of(model))[0]


def read_model_file(path: Path) -> tuple[ModelFile, tuple[str, ...]]:
    """Return a model's YAML file, and the names of the budget fields in it.

    Raises TargetError with file and line if the file is malformed."""
    if not path.exists():
        return ModelFile(), ()
    document = strict_yaml.read(path)
    return checked_document(ModelFile, document, _EXAMPLE), tuple(document.data.get("budgets", ()))


def tolerance_of(
    case: Case, budgets: Budgets, asked: float | None, environ: Mapping[str, str] = os.environ
) -> float:
    """Return how far, in LSB, outputs may be from the expected ones.

    ``asked``: the value of ``--tolerance``, or None; ``budgets``: the case's. Raises UsageError if
    it is too large, or in CI larger than the reviewed one."""
    if asked is None:
        return budgets.tolerance_lsb
    if not 0 <= asked <= MOST_TOLERANCE_LSB:  # also refuses NaN
        raise UsageError(
            f"a tolerance of {asked:g} LSB is not between 0 and {MOST_TOLERANCE_LSB:g}",
            hint="a larger difference does not come from rounding: find the cause, or accept the "
            "outputs as the case's truth (`hil accept --truth`)",
            asked=asked,
        )
    reviewed, path = budgets.tolerance_lsb, _file_of(case.model)
    if asked > reviewed and in_ci(environ):
        raise UsageError(
            f"{case.id}: --tolerance {asked:g} is refused in CI ($CI is set), where the reviewed "
            f"tolerance holds, {reviewed:g} LSB",
            hint=f"write `budgets: {{tolerance_lsb: {asked:g}}}` into {path} and have it reviewed",
            path=path,
            asked=asked,
            reviewed=reviewed,
        )
    return asked


def _file_of(model: str) -> Path:
    source = find_model(model)
    if source.file is not None:
        return source.file.with_suffix(".yaml")
    said = settings()
    return (said.budgets or (said.folder or data_root()) / "budgets") / f"{source.name}.yaml"
