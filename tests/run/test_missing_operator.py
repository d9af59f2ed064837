"""A network with an operator that the runner has no kernel for is refused, and the layer named."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.run.pipeline import RunOptions, run_cases

MODEL = """
import torch
from torch import nn
torch.manual_seed(1)
class Sums(nn.Module):
    def forward(self, x):
        return torch.cumprod(x, 1)
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(8, 4)
        self.sums = Sums()
    def forward(self, x):
        return self.sums(self.scores(x))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 8),)
"""


def test_the_layer_and_the_reason_are_told_before_a_build(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    (tmp_path / "sums.py").write_text(MODEL)
    (record,) = run_cases([Case("corstone-300-m55", str(tmp_path / "sums.py"))], RunOptions())
    assert (record.verdict, record.run_dir) == ("EXPORT_ERROR", None)
    assert record.cause is not None
    assert record.cause.kind == "operator_missing"
    assert record.cause.facts["layers"] == {"aten::cumprod.out": "sums (Sums), on float32"}
    assert "aten::cumprod.out comes from sums (Sums), on float32: ExecuTorch's quantiser" in (
        record.cause.text
    )
    assert "--executorch DIR" in record.cause.text
