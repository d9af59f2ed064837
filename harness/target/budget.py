"""Budgets: what a size may be at most, and what it may grow by over what was accepted. Pure.

A *hard limit* is where memory ends; nobody can accept more. A *ratchet* compares with the
accepted figure and leaves some slack on top. The slack is always counted from the accepted
figure, never from the last run, so small steps cannot add up beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.system import strict_yaml

SLACK_BYTES = 256
SLACK_SHARE = 0.005

Figure = Annotated[
    str,
    Field(
        pattern=r"^(pte_bytes|planned_bytes|npu_scratch_bytes|elf_[A-Za-z0-9_]+"
        r"|[a-z]+_allocator_[a-z_]+|planned_[a-z_]+|stack_[a-z_]+)$"
    ),
]
Bytes = Annotated[int, Field(ge=0)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Slack(_Data):
    """What may be added to an accepted figure: the larger of some bytes and a share of it."""

    bytes: Bytes = SLACK_BYTES
    share: Annotated[float, Field(ge=0, lt=1)] = SLACK_SHARE

    def limit(self, accepted: int) -> int:
        return accepted + max(self.bytes, int(accepted * self.share))


class Budgets(_Data):
    """The ``budgets`` of a target's or a model's YAML::

        budgets:
          limits: {pte_bytes: 65536, elf_ITCM: 0x80000}
          slack: {bytes: 256, share: 0.005}
          slacks: {elf_ITCM: {bytes: 0, share: 0.0}}

    ``limits`` are hard, in bytes by figure; ``slack`` is for the figures not in ``slacks``.
    """

    limits: dict[Figure, Bytes] = {}
    slack: Slack = Slack()
    slacks: dict[Figure, Slack] = {}

    def slack_of(self, figure: str) -> Slack:
        return self.slacks.get(figure, self.slack)

    def merged(self, model: Budgets) -> Budgets:
        """Both hold: the smaller of two hard limits, the model's slack where it has one."""
        limits = {
            name: min(b.limits[name] for b in (self, model) if name in b.limits)
            for name in {*self.limits, *model.limits}
        }
        slack = model.slack if "slack" in model.model_fields_set else self.slack
        return Budgets(limits=limits, slack=slack, slacks={**self.slacks, **model.slacks})


class _ModelFile(_Data):
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
        raise document.place(where).error(f"{'.'.join(map(str, where))}: {first['msg']}") from error


@dataclass(frozen=True)
class Finding:
    """What a gate says of one figure.

    ``state``: "ok", "shrank" (accept it to keep the gain), "new" (nothing accepted yet),
    "grown" (over the ratchet), "over_limit" (over the hard limit), "not_measured".
    """

    figure: str
    state: str
    measured: int | None
    accepted: int | None = None
    limit: int | None = None

    @property
    def failed(self) -> bool:
        return self.state in ("grown", "over_limit", "not_measured")

    def describe(self) -> str:
        if self.state == "not_measured":
            return f"{self.figure} could not be measured, so nothing is known about it"
        if self.state == "over_limit":
            over = (self.measured or 0) - (self.limit or 0)
            return f"{self.figure} is {self.measured} B, {over} B over its limit of {self.limit} B"
        if self.accepted is None:
            return f"{self.figure} is {self.measured} B; nothing is accepted yet"
        return (
            f"{self.figure} went from {self.accepted} to {self.measured} B "
            f"({(self.measured or 0) - self.accepted:+d}, allowed up to {self.limit})"
        )


def check(
    figures: Mapping[str, int], accepted: Mapping[str, int] | None, budgets: Budgets
) -> list[Finding]:
    """One finding per figure that was measured, accepted or limited.

    ``accepted`` is None for a toolchain (or program) that was never accepted. What is accepted
    or limited but not measured is a failure.
    """
    wanted = {*figures, *(accepted or {}), *budgets.limits}
    return [_check_one(n, figures.get(n), accepted, budgets) for n in sorted(wanted)]


def _check_one(
    name: str, measured: int | None, accepted: Mapping[str, int] | None, budgets: Budgets
) -> Finding:
    before = None if accepted is None else accepted.get(name)
    hard = budgets.limits.get(name)
    if measured is None:
        return Finding(name, "not_measured", None, before, hard)
    if hard is not None and measured > hard:
        return Finding(name, "over_limit", measured, before, hard)
    if before is None:
        return Finding(name, "new", measured, None, hard)
    limit = budgets.slack_of(name).limit(before)
    if measured > limit:
        return Finding(name, "grown", measured, before, limit)
    saved = before - measured > limit - before
    return Finding(name, "shrank" if saved else "ok", measured, before, limit)
