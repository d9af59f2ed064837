"""What a run used is read from its record: figures beside the size of their pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case.case import Case
from harness.errors import UsageError, Verdict
from harness.judge.verdict import Judgement
from harness.run.record import RunRecord
from harness.size.run_use import print_use, run_use


def test_use_beside_its_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {
        "method_allocator_used": 40,
        "method_allocator_total": 100,
        "elf_ITCM": 7,
        "ticks": 9,
    }
    RunRecord(Case("t", "m"), "now", Judgement(Verdict.PASS), metrics, run_dir=str(tmp_path)).save()
    used = run_use(tmp_path)
    assert used["figures"] == [
        {"name": "elf_ITCM", "bytes": 7, "of": None},
        {"name": "method_allocator_used", "bytes": 40, "of": 100},
    ]
    print_use(used)
    assert "40 of 100  method_allocator_used" in capsys.readouterr().out


def test_a_run_without_figures_says_so(tmp_path: Path) -> None:
    RunRecord(Case("t", "m"), "now", Judgement(Verdict.HANG), run_dir=str(tmp_path)).save()
    with pytest.raises(UsageError, match="the run ended in HANG"):
        run_use(tmp_path)
