"""What users run: every catalogue model on every target, judged against its reference."""

from __future__ import annotations

from executorch_hil import RunRecord, require_pass
from harness.config.target import Target
from harness.export.program import Program
from harness.firmware.memory import memory_needs


def test_model(hil_run: RunRecord, hil_target: Target, hil_program: Program) -> None:
    """And what was counted of the program, for which pools are laid out, is what it took."""
    require_pass(hil_run)
    if hil_run.source != "bundled":
        return
    needs, taken = memory_needs(hil_program.pte_path, hil_target), hil_run.metrics
    for pool, figure in (
        ("file", "input_file_allocator_used"),
        ("method", "method_allocator_used"),
        ("temp", "temp_allocator"),
    ):
        assert taken[figure] <= needs[pool] <= 1.03 * taken[figure] + 1024, (pool, taken, needs)
