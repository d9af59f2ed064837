"""From a new failure to its commit: ``hil bisect`` for the first few of a night."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from harness.config.case import Case
from harness.core.errors import HarnessError, InfraError
from harness.firmware.source import FirmwareChoice, source_named
from harness.nightly.history.compare import Comparison
from harness.run.bisect import Bisection, bisect
from harness.run.pipeline import RunOptions
from harness.system.progress import Progress

MOST = 3  # failures: what is new in one night mostly has one commit


def culprits(
    comparison: Comparison, firmware: FirmwareChoice, minutes: float, progress: Progress
) -> Iterator[tuple[str, str]]:
    """Of the first new failures for which a checkout has a good and a bad commit: the first bad
    one, or why it was not found. The time is looked at before each revision."""
    end = time.monotonic() + 60 * minutes

    def watched(message: str) -> None:
        if time.monotonic() > end:
            raise InfraError(f"the suite's {minutes:g} minutes were over", kind="out_of_time")
        progress(message)

    new = [case.since for case in comparison.cases if case.state.is_new and case.since is not None]
    ends = [(since.first, *since.commits) for since in new if since.commits is not None]
    for row, good, bad in ends[:MOST]:
        case = Case(row.target, row.model)
        options = RunOptions(firmware=replace(firmware, sources=(source_named(row.source),)))
        try:
            yield row.case, _sentence(bisect(case, good, bad, options, progress=watched))
        except HarnessError as error:
            yield row.case, f"no commit was found: {error.message}"


def _sentence(found: Bisection) -> str:
    if found.first_bad is not None:
        commit = found.first_bad.commit
        return f"the first bad commit is {commit} ({commit.author})"
    names = ", ".join(commit.sha[:10] for commit in found.candidates[:5])
    return f"the first bad commit is one of {len(found.candidates)}: {names}"
