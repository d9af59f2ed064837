"""``hil accept``: make a run the reference run of its case, as a change to review."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.case.case import Case, parse_case
from harness.errors import ExitCode, HarnessError, Verdict
from harness.judge.reference import diff, load_reference, propose, reference_path, render
from harness.judge.verdict import Reason
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.system.files import disk_errors, write_whole
from harness.system.paths import references_dir
from harness.system.progress import Progress

_ACCEPTABLE = (Reason.GROWN, Reason.REFERENCE_OUTPUTS, Reason.NOT_MEASURED)


class NotAcceptable(HarnessError):
    """The run is wrong in itself, so it cannot become a reference."""

    kind = "not_acceptable"
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.FAILED


@dataclass(frozen=True)
class Proposal:
    """The change to one reference file; ``written`` says whether it was made."""

    case: Case
    path: Path
    change: str
    written: bool
    record: RunRecord

    def text(self) -> str:
        if not self.change:
            return f"{self.case.id}: nothing changes, {self.path} already says this"
        done = "written: review and commit it" if self.written else "not written (--dry-run)"
        return f"{self.change}\n{self.path} {done}"

    def summary(self) -> dict[str, Any]:
        return {
            **self.record.summary(),
            "reference": str(self.path),
            "diff": self.change,
            "written": self.written,
        }


def accept_case(
    case_id: str, reason: str, options: RunOptions, *, dry_run: bool, progress: Progress
) -> Proposal:
    """Run the case and write its figures as the new reference.

    Growth is what accepting is for; anything else that is not PASS is refused
    (NotAcceptable), because a reference must never bless a wrong output.
    """
    (record,) = run_cases([parse_case(case_id)], options, progress)
    case = record.case
    cause = record.cause
    if cause is not None and cause.kind not in _ACCEPTABLE:
        raise NotAcceptable(
            f"{case.id} ends in {record.verdict} ({cause.kind}): {cause.text}",
            hint="a reference run must be right; only its size is a matter of acceptance",
        )
    assert record.expectation is not None
    root = references_dir()
    old, path = load_reference(root, case), reference_path(root, case)
    new = propose(
        old,
        pte_sha256=record.expectation.pte_sha256,
        outputs=record.output_sha256,
        metrics={k: v for k, v in record.metrics.items() if not k.endswith("_total")},
        toolchain=record.expectation.toolchain,
        reason=reason,
        when=datetime.now(timezone.utc).date().isoformat(),
    )
    unchanged = old is not None and (old.pte_sha256, old.outputs, old.program, old.firmware) == (
        new.pte_sha256, new.outputs, new.program, new.firmware)  # fmt: skip
    change = "" if unchanged else diff(path, old, new)
    if change and not dry_run:
        _write(path, render(new))
    return Proposal(case, path, change, bool(change) and not dry_run, record)


def _write(path: Path, text: str) -> None:
    with disk_errors("writing the reference"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
