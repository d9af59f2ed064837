"""`hil bisect` of a case: from which commit of the user's checkout on does it fail?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from harness.config.budgets import budgets_of, tolerance_of
from harness.config.case import Case
from harness.config.loading import load_target, spelled
from harness.core.errors import HarnessError
from harness.core.verdict import Verdict
from harness.export.checkout.choice import ExporterChoice
from harness.firmware.choice import FirmwareChoice
from harness.firmware.executorch.checkout import BUILT
from harness.run.bisect import Bisection, Step, commit_of, search
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord, failed_record
from harness.sim.pick import AUTO
from harness.system.clock import now
from harness.system.progress import Progress, silent
from harness.system.worktree import borrowed, top_of


@dataclass(frozen=True)
class JudgeCase:
    """Runs ``case`` as ``hil run --executorch FOLDER`` does."""

    case: Case
    options: RunOptions

    def __call__(self, folder: Path) -> RunRecord:
        firmware = replace(self.options.firmware, root=folder)
        exporter = ExporterChoice(None if self.options.exporter.root is None else folder)
        options = replace(self.options, firmware=firmware, exporter=exporter)
        try:
            (record,) = run_cases([self.case], options)
        except HarnessError as error:  # the revision's: the case was validated before
            return failed_record(self.case, now(), error, firmware.sources[0].name)
        return record

    def command(self, folder: Path) -> str:
        """The same for a shell."""
        words = ["hil", "run", self.case.target, self.case.model, "--executorch", str(folder)]
        for name, part in self.options.firmware.parts.items():
            words += ["--part", f"{name}={part}"]
        if self.options.exporter.root is not None:
            words += ["--exporter", "checkout"]
        if self.options.simulator != AUTO:
            words += ["--simulator", self.options.simulator]
        if self.options.tolerance_lsb is not None:
            words += ["--tolerance", f"{self.options.tolerance_lsb:g}"]
        return shlex.join(words)


def with_parts(firmware: FirmwareChoice) -> FirmwareChoice:
    """Names every part of the checkout's build where the checkout has it: another worktree of it
    has no submodules and no SDK. Raises what ``find_checkout`` does."""
    checkout = firmware.checkout()
    assert checkout is not None
    return replace(firmware, parts={n: part.folder for n, part in checkout.parts.items()})


def bisect(
    case: Case,
    good: str,
    bad: str,
    options: RunOptions,
    *,
    counted_bad: frozenset[Verdict] = frozenset(),
    progress: Progress = silent,
) -> Bisection:
    """``options.firmware`` names the checkout. Raises what ``search`` and ``find_checkout`` do,
    WorktreeBusy."""
    assert options.firmware.root is not None
    case = replace(case, target=spelled(load_target(case.target), case.target))
    tolerance_of(case, budgets_of(case), options.tolerance_lsb)  # validates target and model, too
    top = top_of(options.firmware.root)
    for revision in (good, bad):
        commit_of(top, revision)
    options = replace(options, firmware=with_parts(options.firmware))
    judge = JudgeCase(case, options)
    within = BUILT if options.exporter.root is None else ("*",)
    with borrowed(top, "bisect", within, progress) as worktree:
        found = search(Step(worktree, judge, counted_bad), good, bad, progress)
        return replace(found, command=judge.command(worktree.folder))
