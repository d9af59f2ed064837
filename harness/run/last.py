"""The last run that left a record, of a case or of any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.config.case import Case, parse_case
from harness.core.errors import UsageError
from harness.run.record import RECORD, RunRecord, load_record
from harness.system.files import MALFORMED, read_json
from harness.system.paths import runs_dir


class NoRun(UsageError):
    """``case``: None where any would do. ``path``: where they would be."""

    kind = "no_run"

    def __init__(self, case: str | None) -> None:
        self.case = case
        of = f" of {case}" if case else ""
        super().__init__(
            f"no run{of} is recorded in {runs_dir()}",
            hint="a case that ends before its program runs leaves none: `hil run` says why it did",
            path=runs_dir(),
        )


def last_run(wanted: str | None) -> RunRecord:
    """``wanted``: a run directory, a case as ``parse_case`` takes it, or None for any.

    Raises NoRun, UsageError for what is no case, and as ``load_record`` does.
    """
    if wanted is not None and Path(wanted).is_dir():
        return load_record(Path(wanted))
    case = None if wanted is None else parse_case(wanted).id
    for run_dir in _newest_first():
        if case is None or _case_of(run_dir) == case:
            return load_record(run_dir)
    raise NoRun(case)


def _newest_first() -> Iterator[Path]:
    """Their names begin with the time."""
    runs = runs_dir()
    found = runs.iterdir() if runs.is_dir() else ()
    yield from sorted((d for d in found if (d / RECORD).is_file()), reverse=True)


def _case_of(run_dir: Path) -> str | None:
    """Without what else a record needs to be one."""
    try:
        return Case(**read_json(run_dir / RECORD, finite=False)["case"]).id
    except (OSError, UsageError, *MALFORMED):
        return None
