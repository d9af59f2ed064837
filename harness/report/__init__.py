"""Readers of run records: the terminal, and what CI systems take."""

from __future__ import annotations

from collections.abc import Sequence

from harness.judge.run import Verdict
from harness.run.record import RunRecord


def exit_code(records: Sequence[RunRecord]) -> int:
    """0 when every case passed, 2 wrong usage, 3 when only the infrastructure failed, else 1.

    Nothing run is nothing proven: no records, or only skipped ones, is 1.
    """
    names = {r.verdict.name for r in records}
    if names and names <= {"PASS", "SKIPPED"} and "PASS" in names:
        return 0
    return 3 if names and names <= {"PASS", "SKIPPED", "INFRA"} and "INFRA" in names else 1


def log_exit_code(verdict: Verdict) -> int:
    """The exit code for one judged console log."""
    return {"PASS": 0, "INFRA": 3}.get(verdict.name, 1)


def overall(records: Sequence[RunRecord]) -> RunRecord | None:
    """The record that speaks for all: the first that did not pass, else the first."""
    return next((r for r in records if not r.verdict.passed), records[0] if records else None)
