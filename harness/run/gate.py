"""Sizes of programs and runners held against budgets and what was accepted. Runs nothing.

A subject is a case, ``TARGET/MODEL`` (its program), or ``TARGET/runner`` (the firmware). Where the
gate is strict, as in CI, a subject that nothing was accepted of fails.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from harness.config.budget import Budgets
from harness.config.budgets import budgets_of
from harness.config.case import RUNNER, Case
from harness.config.loading import load_targets
from harness.config.matrix import default_matrix, default_models, named_targets
from harness.core.errors import HarnessError
from harness.judge.growth import HeldFigure, State, check
from harness.judge.reference import Reference, load_reference, references_of
from harness.run.measure import Measured, measure_cases
from harness.size.budgeted_figures import changes_behind
from harness.size.difference import Difference, difference, sentences
from harness.system.progress import Progress, silent

_TOP_CAUSES = 5


@dataclass(frozen=True)
class Gate:
    """The outcome for one subject.

    ``reasons`` has the top causes of each failed figure. ``is_new``: nothing was ever accepted
    for this toolchain, so nothing could be compared. ``refuses_new``: then it fails.
    """

    subject: str  # "corstone-300-m55/ds_cnn"
    toolchain: str
    findings: tuple[HeldFigure, ...]
    reasons: dict[str, list[str]]
    difference: Difference | None
    refuses_new: bool = False

    @property
    def failed(self) -> bool:
        return any(f.failed for f in self.findings) or (self.refuses_new and self.is_new)

    @property
    def is_new(self) -> bool:
        return all(f.accepted is None for f in self.findings)

    @property
    def accept_command(self) -> str:
        return f'./hil accept {self.subject} --only size --reason "..."'

    def message(self) -> str:
        """Why it failed, for a person: figures, causes, and the command that accepts."""
        lines = []
        failed = [f for f in self.findings if f.failed]
        for reasons, figures in groupby(failed, lambda f: self.reasons.get(f.figure, [])):
            lines += [f"{self.subject}: {f.describe()}" for f in figures]
            lines += [f"  {reason}" for reason in reasons]
        if not failed:
            whose = f" with {self.toolchain}" if self.subject.endswith(f"/{RUNNER}") else ""
            lines.append(f"{self.subject}: new: nothing was accepted yet{whose} to compare it with")
            lines.append(f"accept it with: {self.accept_command}; or name it with --allow-new")
        states = {f.state for f in failed}
        if states == {State.GROWN}:
            lines.append(f"accept it with: {self.accept_command}")
        elif State.OVER_LIMIT in states:
            lines.append("a hard limit cannot be accepted: make it smaller, or change the budget")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "toolchain": self.toolchain,
            "state": "failed" if self.failed else "new" if self.is_new else "ok",
            "figures": [
                {
                    "figure": f.figure,
                    "state": f.state,
                    "measured": f.measured,
                    "accepted": f.accepted,
                    "limit": f.limit,
                    "causes": self.reasons.get(f.figure, []),
                }
                for f in self.findings
            ],
            "accept": self.accept_command if self.failed or self.is_new else None,
        }


def every_subject() -> list[Case]:
    """The runners and all models (``default_models``); of the many Ethos-U targets a sample, and
    runners for Zephyr where there is a workspace to build them in."""
    named = named_targets()
    targets = [target for _, target in named] or load_targets()
    workspace = "ZEPHYR_BASE" in os.environ
    runners = [
        Case(target.name, RUNNER)
        for target in targets
        if target.memory
        and (named or target.npu is None or target.npu.has_default_macs)
        and (target.zephyr is None or workspace)
    ]
    return runners + [case for case, _ in default_matrix(targets, default_models(), "sample")]


def gate_cases(
    subjects: Sequence[Case],
    progress: Progress = silent,
    *,
    strict: bool = False,
    allow_new: Sequence[str] = (),
) -> list[Gate]:
    """One gate per subject, in order. What cannot be measured is a failed gate; with ``strict`` so
    is a new one, but for those that ``allow_new`` names (``is_allowed``)."""
    gates = [
        unmeasured(case, found) if isinstance(found, HarnessError) else hold_measured(found)
        for case, found in zip(subjects, measure_cases(subjects, progress), strict=True)
    ]
    return [
        replace(gate, refuses_new=strict and not is_allowed(case, allow_new))
        for case, gate in zip(subjects, gates, strict=True)
    ]


def is_allowed(case: Case, allow_new: Sequence[str]) -> bool:
    """Whether a subject may be new: by TARGET/MODEL or by the model's name, in which ``*`` stands
    for anything."""
    return any(fnmatchcase(name, one) for one in allow_new for name in (case.id, case.name))


def unmeasured(case: Case, error: HarnessError) -> Gate:
    """A subject that could not even be made: that is a failure, not a silence."""
    figure = "elf_loaded" if case.model == RUNNER else "pte_bytes"
    finding = HeldFigure(figure, State.NOT_MEASURED, None)
    return Gate(case.id, "", (finding,), {figure: [error.message]}, None)


def hold_measured(measured: Measured) -> Gate:
    reference = load_reference(references_of(measured.case), measured.case)
    return hold(measured, reference, budgets_of(measured.case))


def hold(measured: Measured, reference: Reference | None, budgets: Budgets) -> Gate:
    """Pure: the same facts give the same outcome."""
    accepted = {} if reference is None else reference.accepted(measured.toolchain)
    findings = check((measured.stage,), measured.figures, accepted, budgets)
    before = None if reference is None else reference.anatomies.get(measured.toolchain)
    found = None
    if before is not None:
        found = difference(before.anatomy, before.like_this(measured.anatomy))
    reasons = {f.figure: _reasons(f.figure, found) for f in findings if found and f.failed}
    return Gate(measured.case.id, measured.toolchain, findings, reasons, found)


def _reasons(figure: str, found: Difference) -> list[str]:
    """The top causes of a figure's growth, a sentence each."""
    return sentences(changes_behind(figure, found))[:_TOP_CAUSES]
