"""A few of ExecuTorch's Ethos-U tests, unmodified, on the stand-in's NPU.

These build a runner and export with torch: half a minute each.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from harness.conformance.model import Report, Selection
from harness.conformance.run import conform
from harness.system.progress import silent


def results(report: Report) -> list[dict[str, object]]:
    """All but how long they took."""
    found = sorted(report.verdicts, key=lambda verdict: verdict.id)
    return [{**asdict(verdict), "seconds": 0} for verdict in found]


@pytest.mark.parametrize("suite", ["ethos-u65", "ethos-u85"])
def test_add(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protects the chain of suite, stand-in, doorbell, model and runner, for both boards; and that
    the same programs give the same again when they come out of the cache, where torch is not
    started: with a report that is the same test by test."""
    monkeypatch.setattr("harness.conformance.remembered._place", lambda: tmp_path / "suites")
    selection = Selection("test_add_tensor_u", sample=5)
    report, again = (conform(suite, None, selection, silent, workers=1) for _ in range(2))
    assert report.summary["passed"] == report.on_target == len(report.verdicts) == 5
    assert (report.from_cache, again.from_cache) == (0, 5)
    assert not again.log.exists()
    assert results(again) == results(report)
