"""Budgets of figures, of their growth, of outputs' tolerance and of accuracy.

A *hard limit* is where memory ends; `hil accept` cannot exceed it. The *slack* is how much
``harness.judge.budget_check`` lets an accepted figure grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from harness.config.figures import UNLISTED, figure
from harness.config.known import require_known_defect
from harness.config.schema import Data

SLACK_BYTES = 256
SLACK_SHARE = 0.005
SLACK_DB = 1.0  # a sixth of what one bit of every activation is worth, 20 log10(2)
SLACK_TOP1 = 0.02
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
Decibels = Annotated[float, Field(ge=0, le=200)]
Operators = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


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
          min_sqnr_db: 20
          min_top1: 0.9
          delegated: all
          accept_known_defects: [cat-of-channels-last]

    ``limits`` are hard, in bytes by figure; ``slack`` is for the figures not in ``slacks``.
    ``tolerance_lsb`` is how many steps of its scale an output may be off; every report repeats it.
    ``min_sqnr_db``, ``min_top1``: the least of each output against the float model
    (``OutputAccuracy``), and ``slack_…`` how much they may fall below the accepted ones.
    ``delegated``: how many of the model's operators an NPU has to run at least, or all of them.
    ``accept_known_defects``: known defects of ExecuTorch that may pass with a note.
    """

    limits: dict[FigureName, Bytes] = field(default_factory=dict)
    slack: Slack = field(default_factory=Slack)
    slacks: dict[FigureName, Slack] = field(default_factory=dict)
    tolerance_lsb: Steps = 0.0
    min_sqnr_db: Decibels | None = None
    min_top1: Share | None = None
    delegated: Operators | Literal["all"] | None = None
    slack_sqnr_db: Decibels = SLACK_DB
    slack_top1: Share = SLACK_TOP1
    accept_known_defects: tuple[DefectName, ...] = ()

    def merged(self, model: Mapping[str, Any]) -> Budgets:
        """Combine with the budgets of a model's file (``harness.config.case_budgets``)."""
        theirs = model.get("limits", {})
        limits = {
            name: min(b[name] for b in (self.limits, theirs) if name in b)
            for name in {*self.limits, *theirs}
        }
        slacks = {**self.slacks, **model.get("slacks", {})}
        found = {**model, "limits": limits, "slacks": slacks}
        for name in ("min_sqnr_db", "min_top1"):
            both = (getattr(self, name), model.get(name))
            found[name] = max((least for least in both if least is not None), default=None)
        wanted = [d for d in (self.delegated, model.get("delegated")) if d is not None]
        numbers = [each for each in wanted if each != "all"]
        found["delegated"] = "all" if len(numbers) < len(wanted) else max(numbers, default=None)
        return replace(self, **found)

    @property
    def least_accuracy(self) -> dict[str, float]:
        """The minima that are set, by the name of their figure."""
        found = {"sqnr_db": self.min_sqnr_db, "top1": self.min_top1}
        return {name: least for name, least in found.items() if least is not None}
