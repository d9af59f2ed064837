"""A few of ExecuTorch's Ethos-U tests, unmodified, on the stand-in's NPU.

These build a runner and export with torch: a minute each.
"""

from __future__ import annotations

import pytest

from harness.conformance.model import Selection
from harness.conformance.run import conform


@pytest.mark.parametrize(("suite", "least"), [("ethos-u65", 5), ("ethos-u85", 5)])
def test_add(suite: str, least: int) -> None:
    """Protects the chain of suite, stand-in, doorbell, model and runner, for both boards."""
    report = conform(suite, None, Selection("test_add_tensor_u"), lambda _message: None)
    assert report.summary["passed"] == report.on_target == len(report.verdicts) >= least
