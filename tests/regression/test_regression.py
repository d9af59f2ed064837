"""What users run: every catalogue model on every target, judged against its reference."""

from __future__ import annotations

from harness.plugin import require_pass
from harness.run.record import RunRecord


def test_model(run: RunRecord) -> None:
    require_pass(run)
