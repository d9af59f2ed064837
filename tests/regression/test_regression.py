"""What users run: every catalogue model on every target, judged against its reference."""

from __future__ import annotations

from executorch_hil import RunRecord, require_pass


def test_model(hil_run: RunRecord) -> None:
    require_pass(hil_run)
