"""Hold a measured anatomy against budgets and accepted sizes; say what grew, and how to accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import HarnessError
from harness.footprint.anatomy import Anatomy
from harness.footprint.difference import Change, Difference, causes, difference
from harness.footprint.explain import sentences
from harness.footprint.figures import concerning, kind_of
from harness.size.accepted import AcceptedSizes, fold
from harness.target.budget import Budgets, Finding, check

_TOP_CAUSES = 5


@dataclass(frozen=True)
class Gate:
    """The outcome for one subject: a case's program, or a target's runner.

    ``reasons`` has the top causes of each failed figure. ``is_new``: nothing was ever accepted
    for this toolchain, so nothing could be compared.
    """

    subject: str  # "corstone-300-m55/ds_cnn"
    toolchain: str
    findings: tuple[Finding, ...]
    reasons: dict[str, list[str]]
    difference: Difference | None
    accept_command: str

    @property
    def failed(self) -> bool:
        return any(f.failed for f in self.findings)

    @property
    def is_new(self) -> bool:
        return self.difference is None

    def message(self) -> str:
        """Why it failed, for a person: figures, causes, and the command that accepts."""
        lines = []
        for finding in self.findings:
            if finding.failed:
                lines.append(f"{self.subject}: {finding.describe()}")
                lines += [f"  {reason}" for reason in self.reasons.get(finding.figure, [])]
        states = {f.state for f in self.findings if f.failed}
        if states == {"grown"}:
            lines.append(f"accept it with: {self.accept_command}")
        elif "over_limit" in states:
            lines.append("a hard limit cannot be accepted: make it smaller, or change the budget")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        return {
            "subject": self.subject, "toolchain": self.toolchain,
            "state": "new" if self.is_new and not self.failed else
                     "failed" if self.failed else "ok",
            "figures": [
                {"figure": f.figure, "state": f.state, "measured": f.measured,
                 "accepted": f.accepted, "limit": f.limit,
                 "causes": self.reasons.get(f.figure, [])}
                for f in self.findings
            ],
            "accept": self.accept_command if self.failed or self.is_new else None,
        }  # fmt: skip


def unmeasured(subject: str, figure: str, error: HarnessError) -> Gate:
    """A subject that could not even be made: that is a failure, not a silence."""
    finding = Finding(figure, "not_measured", None)
    return Gate(subject, "", (finding,), {figure: [error.message]}, None, "")


def hold(
    subject: str,
    anatomy: Anatomy,
    figures: Mapping[str, int],
    toolchain: str,
    accepted: AcceptedSizes | None,
    budgets: Budgets,
) -> Gate:
    """Pure: the same facts give the same outcome."""  # fmt: skip
    before = accepted.by_toolchain.get(toolchain) if accepted else None
    findings = check(figures, before.figures if before else None, _own(budgets, figures))
    found = None
    if before is not None:
        found = difference(before.anatomy, fold(anatomy, before.threshold))
    reasons = {
        f.figure: sentences(causes(concerning(f.figure, _where(f.figure, found))), 1 << 62)[
            :_TOP_CAUSES
        ]
        for f in findings
        if found is not None and f.failed
    }
    command = f'./hil size accept {subject} --reason "..."'
    return Gate(subject, toolchain, tuple(findings), reasons, found, command)


def _own(budgets: Budgets, figures: Mapping[str, int]) -> Budgets:
    """The limits on figures of this kind: a program's gate does not measure the firmware."""
    kinds = {kind_of(figure) for figure in figures}
    limits = {name: n for name, n in budgets.limits.items() if kind_of(name) in kinds}
    return budgets.model_copy(update={"limits": limits})


def _where(figure: str, found: Difference) -> tuple[Change, ...]:
    return found.memory if figure in ("planned_bytes", "npu_scratch_bytes") else found.parts
