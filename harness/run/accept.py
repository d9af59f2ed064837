"""``hil accept``: propose the present state of a subject as the accepted one, to be reviewed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from harness.config.case import RUNNER, Case, parse_case
from harness.config.case_budgets import budgets_of
from harness.config.figures import figure
from harness.config.loading import load_target, loadable_name
from harness.core.errors import HarnessError, UsageError
from harness.core.judgement import Reason
from harness.core.verdict import ExitCode, Verdict
from harness.judge.budget_check import FigureState, check, check_accuracy
from harness.judge.pte_contents import contents_of
from harness.judge.reference import (
    ANY_TOOLCHAIN,
    Acceptance,
    diff,
    load_reference,
    propose,
    reference_path,
    references_of,
    render,
)
from harness.run.gate import Measured, measure_cases
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.system.files import disk_errors, write_whole
from harness.system.paths import data_root
from harness.system.progress import Progress
from harness.system.settings import OWN

# What to accept: the sizes of program and firmware, which need no run; the outputs alone; or,
# where None stands, both and all that the run measures.
Only = Literal["size", "outputs"]
_ACCEPTABLE = (Reason.GROWN, Reason.ACCURACY, Reason.REFERENCE_OUTPUTS, Reason.NOT_MEASURED)
# A run that becomes the truth may differ from the oracle and from the truth until now.
_TRUTHS = (*_ACCEPTABLE, Reason.OUTPUTS_DIFFER, Reason.FLOAT_ROUNDING, Reason.TRUTH_OUTPUTS)


class NotAcceptable(HarnessError):
    """The result is wrong in itself, so it cannot become a reference."""

    kind = "not_acceptable"
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.FAILED


@dataclass(frozen=True)
class Proposal:
    """The change to one accepted file; ``written`` says whether it was made."""

    case: Case
    path: Path
    change: str
    written: bool
    record: RunRecord | None  # None when nothing was run
    is_new: bool = False  # nothing was accepted before
    figures: Mapping[str, int] = field(default_factory=dict)  # that are accepted

    def text(self) -> str:
        if not self.change:
            return f"{self.case.id}: nothing changes, {self.path} already says this"
        done = "written: review and commit it" if self.written else "not written (--dry-run)"
        figures = (f"  {name} {number:,}" for name, number in self.figures.items())
        new = "\n".join([f"{self.case.id}: new reference", *figures])  # the rest is in the file
        change = new if self.is_new else self.change
        return "\n".join([change, *self._of_run(), f"{self.path} {done}"])

    def _of_run(self) -> list[str]:
        if self.record is None:
            return []
        change = _program_change(self.record)
        program = [f"program: {change}"] if change else []
        notes = [f"note: {n}" for n in self.record.notes]
        return [f"run: {self.record.verdict_text}", *program, *notes]

    def summary(self) -> dict[str, Any]:
        return {
            **({"case": self.case.id} if self.record is None else self.record.summary()),
            "reference": str(self.path),
            "program_change": "" if self.record is None else _program_change(self.record),
            "diff": self.change,
            "written": self.written,
        }


def accept_case(
    case_id: str,
    reason: str,
    options: RunOptions,
    *,
    only: Only | None = None,
    truth: bool = False,
    dry_run: bool,
    progress: Progress,
) -> Proposal:
    """Run or measure the subject, and write the result as the new reference.

    ``options.firmware`` says whose reference: a checkout's runner has a file of its own. ``truth``
    makes these outputs, even if they differ from the oracle's, the expected ones of every firmware;
    it is refused for another program than the accepted one, as nothing would prove them.

    Growth is accepted. A figure over its hard limit and a run that is wrong are refused
    (NotAcceptable), because a reference must never bless them. Raises what prevents the run or the
    measurement, and UsageError for a subject, reason or part that does not exist."""
    case = parse_case(case_id)
    if not reason.strip():
        raise UsageError("the reason is empty", hint="say why this is right; the file keeps it")
    if case.model == RUNNER and only == "outputs":
        raise UsageError(f"{case.id} has no outputs: it is a firmware, not a case")
    if len(options.firmware.sources) != 1:
        raise UsageError("--firmware both has two results, and one can be accepted at a time")
    (source,) = options.firmware.sources
    case = replace(case, target=loadable_name(load_target(case.target), case.target))
    root = references_of(case)
    _refuse_harness_references(case, root)
    sized = case.model == RUNNER or only == "size"
    if sized and (truth or not source.sizes_are_accepted):
        raise UsageError(
            "sizes alone are accepted of the bundled runner, and have no truth",
            hint="accept a case with its run: TARGET/MODEL, without --only size",
        )
    if sized:
        accepting, record = _sizes(case, reason, progress), None
    else:
        accepting, record = _run(case, reason, options, only, truth, progress)
    _refuse_what_is_over_a_limit(case, accepting)
    old, path = load_reference(root, case, source.name), reference_path(root, case, source.name)
    new = propose(old, accepting)
    same = old is not None and old.equals_without_history(new)
    if not same and not dry_run:
        with disk_errors("writing the reference"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, render(new))
    change, written = "" if same else diff(path, old, new), not (same or dry_run)
    figures = {n: v for n, v in accepting.figures.items() if figure(n).gated}
    return Proposal(case, path, change, written, record, old is None, figures)


def _refuse_harness_references(case: Case, root: Path) -> None:
    """Only those who work on the harness write the references that come with it."""
    ours = data_root()
    if root == ours / "references" and not Path.cwd().is_relative_to(ours):
        raise UsageError(
            f"there is no place for the reference of {case.id}: those that come with the harness "
            "are not yours to change",
            hint=f"make an empty {OWN} at the root of your repository, and references are kept in "
            "`references` next to it; or name a folder with $HIL_REFERENCES",
            kind="no_references",
            case=case.id,
        )


def _sizes(case: Case, reason: str, progress: Progress) -> Acceptance:
    """Measures the firmware, and for a case its program, without a run."""
    runner = Case(case.target, RUNNER)
    programs = [] if case == runner else [case]
    firmwares = [runner] if case == runner or load_target(case.target).memory else []
    found = [_required(m) for m in measure_cases([*programs, *firmwares], progress)]
    return Acceptance(
        toolchain=found[-1].toolchain,
        reason=reason,
        when=_today(),
        stages=tuple(m.stage for m in found),
        figures={name: value for m in found for name, value in m.figures.items()},
        anatomies={found[0].toolchain: found[0].anatomy},
        npu_cost=found[0].npu_cost,
    )


def _run(
    case: Case,
    reason: str,
    options: RunOptions,
    only: Only | None,
    truth: bool,
    progress: Progress,
) -> tuple[Acceptance, RunRecord]:
    options = replace(options, strict=False)  # accepting is how another program is let in
    (record,) = run_cases([case], options, progress)
    cause = record.cause
    if cause is not None and record.wrong_use:
        raise UsageError(f"{case.id}: {cause.text}")
    if cause is not None and cause.kind not in (_TRUTHS if truth else _ACCEPTABLE):
        raise NotAcceptable(
            f"{case.id} ends in {record.verdict} ({cause.kind}): {cause.text}",
            hint="a reference run must be right; only its size is a matter of acceptance",
        )
    assert record.expectation is not None
    change = _program_change(record)
    if truth and change:
        raise NotAcceptable(
            f"{case.id} ran another program than the accepted one: {change}",
            hint="accept it without --truth first: then the oracle confirms its outputs",
        )
    outputs = Acceptance(
        toolchain=record.expectation.toolchain,
        reason=reason,
        when=_today(),
        pte_sha256=record.expectation.pte_sha256,
        outputs=record.output_sha256,
        truth=truth,
        contents=None if record.program is None else contents_of(Path(record.program.pte)),
        accuracy=record.accuracy,
        program_change=change,
    )
    if only == "outputs":
        return outputs, record
    (found,) = measure_cases([case], progress)
    program = _required(found)
    return replace(
        outputs,
        stages=("run", "program"),
        figures={**record.metrics, **program.figures},
        anatomies={ANY_TOOLCHAIN: program.anatomy},
        npu_cost=program.npu_cost,
    ), record


def _program_change(record: RunRecord) -> str:
    """Return the difference from the program accepted before; "" if the program is the same."""
    difference = None if record.expectation is None else record.expectation.program_difference
    return "" if difference is None else str(difference)


def _required(found: Measured | HarnessError) -> Measured:
    if isinstance(found, HarnessError):
        raise found
    return found


def _refuse_what_is_over_a_limit(case: Case, accepting: Acceptance) -> None:
    budgets = budgets_of(case)
    checked = check(accepting.stages, accepting.figures, {}, budgets)
    over = [f.describe() for f in checked if f.state is FigureState.OVER_LIMIT]
    over += [each.describe() for each in check_accuracy(accepting.accuracy, (), budgets)]
    if over:
        raise NotAcceptable(
            f"{case.id}: {'; '.join(over)}",
            hint="a hard limit cannot be accepted: change the program, or the budget",
        )


def _today() -> str:
    return datetime.now(timezone.utc).date().isoformat()
