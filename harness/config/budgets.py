"""Budgets: the most a figure may be, how much it may grow beyond the accepted one, and how far
outputs may be off.

A *hard limit* is where memory ends; `hil accept` cannot exceed it. The *slack* is how much
``harness.judge.budget_check`` lets an accepted figure grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from harness.config.figures import UNLISTED, figure
from harness.config.known_defects import require_known_defect
from harness.config.schema import Data

SLACK_BYTES = 256
SLACK_SHARE = 0.005
# The largest tolerance for outputs. The largest difference that a known rounding ever made is 11
# steps (docs/decisions/named-differences.md), and 16 are already a sixteenth of the int8 range.
MOST_TOLERANCE_LSB = 16.0


def _budgeted(name: str) -> str:
    row = figure(name)
    if row is UNLISTED or not row.gated:
        raise ValueError(f"{name!r} is not a figure that can have a budget")
    return name


FigureName = Annotated[str, AfterValidator(_budgeted)]
Bytes = Annotated[int, Field(ge=0)]
DefectName = Annotated[str, AfterValidator(require_known_defect)]
Steps = Annotated[float, Field(ge=0, le=MOST_TOLERANCE_LSB)]


@dataclass(frozen=True, kw_only=True)
class Slack(Data):
    """How much an accepted figure may grow: by the larger of ``bytes`` and a ``share`` of it."""

    bytes: Bytes = SLACK_BYTES
    share: Annotated[float, Field(ge=0, lt=1)] = SLACK_SHARE

    def limit(self, accepted: int) -> int:
        return accepted + max(self.bytes, int(accepted * self.share))


@dataclass(frozen=True, kw_only=True)
class Budgets(Data):
    """The ``budgets`` of a target's or a model's YAML::

        budgets:
          limits: {pte_bytes: 65536, elf_ITCM: 0x80000}
          slack: {bytes: 256, share: 0.005}
          slacks: {elf_ITCM: {bytes: 0, share: 0.0}}
          tolerance_lsb: 1
          accept_known_defects: [cat-of-channels-last]

    ``limits`` are hard, in bytes by figure; ``slack`` is for the figures not in ``slacks``.
    ``tolerance_lsb`` is how many steps of its scale an output may be off; every report repeats it.
    ``accept_known_defects``: known defects of ExecuTorch that may pass with a note.
    """

    limits: dict[FigureName, Bytes] = field(default_factory=dict)
    slack: Slack = field(default_factory=Slack)
    slacks: dict[FigureName, Slack] = field(default_factory=dict)
    tolerance_lsb: Steps = 0.0
    accept_known_defects: tuple[DefectName, ...] = ()

    def merged(self, model: Mapping[str, Any]) -> Budgets:
        """Combined with the budgets of a model's file (``harness.config.case_budgets``): of two
        hard limits the smaller one; of everything else the model's, if it has one."""
        theirs = model.get("limits", {})
        limits = {
            name: min(b[name] for b in (self.limits, theirs) if name in b)
            for name in {*self.limits, *theirs}
        }
        slacks = {**self.slacks, **model.get("slacks", {})}
        return replace(self, **{**model, "limits": limits, "slacks": slacks})
