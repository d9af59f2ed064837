"""What a run used is read from its record: figures beside the size of their pool."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.core.judgement import Judgement
from harness.core.verdict import Verdict
from harness.report.size import print_use
from harness.run.directory import save_record
from harness.run.measure import run_use
from harness.run.record import RunRecord


@pytest.mark.parametrize("pool", ["method_allocator_used_total", "method_allocator_total"])
def test_use_beside_its_pool(tmp_path: Path, pool: str) -> None:
    """The first is how our runner's line is read."""
    metrics = {"method_allocator_used": 40, pool: 100, "elf_ITCM": 7, "ticks_set0": 9}
    save_record(
        RunRecord(Case("t", "m"), "now", Judgement(Verdict.PASS), metrics, run_dir=str(tmp_path))
    )
    used = run_use(tmp_path)
    assert [(f["name"], f["bytes"], f["of"]) for f in used["figures"]] == [
        ("elf_ITCM", 7, None),
        ("method_allocator_used", 40, 100),
    ]
    shown = Console(record=True, width=120)
    print_use(shown, used)
    (row,) = [line for line in shown.export_text().splitlines() if "method" in line][:1]
    assert row.split()[:3] == ["40", "100", "method_allocator_used"]
    assert "all that was used of the method's pool" in row


def test_a_run_without_figures_says_so(tmp_path: Path) -> None:
    save_record(RunRecord(Case("t", "m"), "now", Judgement(Verdict.HANG), run_dir=str(tmp_path)))
    with pytest.raises(UsageError, match="the run ended in HANG"):
        run_use(tmp_path)
