"""Budgets: what a figure may be at most, what it may grow by over what was accepted, and how far
outputs may be off.

A *hard limit* is where memory ends; nobody can accept more. The slack is what a *ratchet*
(``harness.judge.growth``) leaves on top of an accepted figure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from harness.system import strict_yaml
from harness.target.data import Data
from harness.target.figures import figure

SLACK_BYTES = 256
SLACK_SHARE = 0.005
# The most that outputs may be off and still be called the same. The largest difference that a
# known rounding ever made is 11 steps (docs/decisions/named-differences.md), and 16 are already
# a sixteenth of all that an int8 can say.
MOST_TOLERANCE_LSB = 16.0


def _budgeted(name: str) -> str:
    row = figure(name)
    if row is None or not row.accepted:
        raise ValueError(f"no figure that can have a budget is called {name!r}")
    return name


FigureName = Annotated[str, AfterValidator(_budgeted)]
Bytes = Annotated[int, Field(ge=0)]
Steps = Annotated[float, Field(ge=0, le=MOST_TOLERANCE_LSB, allow_inf_nan=False)]


class Slack(Data):
    """What may be added to an accepted figure: the larger of some bytes and a share of it."""

    bytes: Bytes = SLACK_BYTES
    share: Annotated[float, Field(ge=0, lt=1)] = SLACK_SHARE

    def limit(self, accepted: int) -> int:
        return accepted + max(self.bytes, int(accepted * self.share))


class Budgets(Data):
    """The ``budgets`` of a target's or a model's YAML::

        budgets:
          limits: {pte_bytes: 65536, elf_ITCM: 0x80000}
          slack: {bytes: 256, share: 0.005}
          slacks: {elf_ITCM: {bytes: 0, share: 0.0}}
          tolerance_lsb: 1

    ``limits`` are hard, in bytes by figure; ``slack`` is for the figures not in ``slacks``.
    ``tolerance_lsb`` is how many steps of its scale an output may be off; every report says it.
    """

    limits: dict[FigureName, Bytes] = Field(default_factory=dict)
    slack: Slack = Slack()
    slacks: dict[FigureName, Slack] = Field(default_factory=dict)
    tolerance_lsb: Steps = 0.0

    def slack_of(self, figure: str) -> Slack:
        return self.slacks.get(figure, self.slack)

    def merged(self, model: Budgets) -> Budgets:
        """Both hold: the smaller of two hard limits; slack and tolerance are the model's where it
        has them."""
        limits = {
            name: min(b.limits[name] for b in (self, model) if name in b.limits)
            for name in {*self.limits, *model.limits}
        }
        slack = model.slack if "slack" in model.model_fields_set else self.slack
        tolerance = (model if "tolerance_lsb" in model.model_fields_set else self).tolerance_lsb
        return Budgets(
            limits=limits,
            slack=slack,
            slacks={**self.slacks, **model.slacks},
            tolerance_lsb=tolerance,
        )


class _ModelFile(Data):
    budgets: Budgets = Budgets()


def read_model_budgets(path: Path) -> Budgets:
    """Of a model's YAML file. Raises TargetError, with file and line, for what is wrong in it."""
    if not path.exists():
        return Budgets()
    document = strict_yaml.read(path)
    try:
        return _ModelFile.model_validate(document.data).budgets
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = tuple(part for part in first["loc"] if part != "[key]")
        name = ".".join(map(str, where))
        said = "unknown key" if first["type"] == "extra_forbidden" else str(first["msg"])
        raise document.place(where).error(
            f"{name}: {said}", hint="for example `budgets: {limits: {pte_bytes: 0x4000}}`"
        ) from error
