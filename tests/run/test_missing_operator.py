"""A network with an operator that the runner has no kernel for proves nothing: the layer, who left
the operator, and what helps are reported before a build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.config.target import Target
from harness.core.judgement import Cause
from harness.export.batch import ExportOptions
from harness.export.program import Program
from harness.firmware.operators import RunnerLacks
from harness.firmware.sources.bundled import Bundled
from harness.run.pipeline import RunOptions, run_cases
from harness.run.remedies import require_possible
from harness.run.subjects import export_cases

Lacking = Callable[[str, str], Cause]

SUMS = """
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
CUSTOM = """
import torch
from torch import nn
torch.manual_seed(1)
own = torch.library.Library("mine", "DEF")
own.define("twist(Tensor x) -> Tensor")
own.define("twist.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
own.impl("twist", lambda x: x.sin() * 2, "CPU")
own.impl("twist.out", lambda x, *, out: out.copy_(x.sin() * 2), "CPU")
torch.library.register_fake("mine::twist", lambda x: torch.empty_like(x))
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(8, 4)
    def forward(self, x):
        return torch.ops.mine.twist(self.scores(x)) + 1
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 8),)
"""
RANDOM = """
import torch
from torch import nn
torch.manual_seed(1)
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(8, 4)
    def forward(self, x):
        return self.scores(x) + torch.rand(1, 4) * 1e-9
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 8),)
"""

SEQUENCE = """
import torch
from torch import nn
torch.manual_seed(1)
ModelUnderTest = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Conv1d(4, 2, 3)).eval()
ModelInputs = (torch.randn(1, 2, 16),)
"""


class WithoutConvolution(Bundled):
    """The bundled runner as if it had no kernel for a convolution of floats."""

    def without_kernel(self, operators: Sequence[str], target: Target) -> tuple[str, ...]:
        return tuple(name for name in operators if name == "aten::convolution.out")


@pytest.fixture
def lacking(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> Lacking:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)

    def cause_of(model: str, target: str) -> Cause:
        (tmp_path / "net.py").write_text(model)
        (record,) = run_cases([Case(target, str(tmp_path / "net.py"))], RunOptions())
        assert (record.verdict, record.run_dir) == ("NO_VERDICT", None)
        assert record.cause is not None
        assert record.cause.kind == "runner_lacks"
        return record.cause

    return cause_of


def test_the_layer_the_line_and_the_quantiser_are_named(lacking: Lacking) -> None:
    cause = lacking(SUMS, "corstone-300-m55")
    where = "sums (Sums), net.py:7, on float32: ExecuTorch's quantiser leaves it in floats"
    assert cause.facts["layers"] == {"aten::cumprod.out": where}
    assert f"aten::cumprod.out comes from {where}" in cause.text
    assert "ExecuTorch's own kernel libraries have no aten::cumprod.out either" in cause.text
    assert "--firmware" not in cause.text, "ExecuTorch lacks it, too"


def test_the_partitioners_rule_is_asked_for(lacking: Lacking) -> None:
    cause = lacking(SUMS, "corstone-300-u55-128")
    assert "ExecuTorch's partitioner does not give it to the NPU (" in cause.text
    assert "net.py:7" in cause.text


def test_an_operator_of_the_users_own_is_named(lacking: Lacking) -> None:
    cause = lacking(CUSTOM, "corstone-300-m55")
    assert "mine::twist.out comes from the model's own forward, net.py:16" in cause.text


def test_what_executorch_has_is_advised_untried(lacking: Lacking) -> None:
    cause = lacking(RANDOM, "corstone-300-m55")
    assert "aten::rand.out comes from the model's own forward, net.py:10, on float32" in cause.text
    assert "untried: ExecuTorch's portable library has a kernel" in cause.text


def test_what_was_tried_on_linux_is_advised(lacking: Lacking) -> None:
    cause = lacking(RANDOM, "corstone-1000-a320")
    assert "corstone-1000-a320@portable-int8" in cause.text
    assert "--firmware wheel (tried: ExecuTorch's runtime runs that program here)" in cause.text


def test_the_explicit_layout_is_tried(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone quantises a Conv1d."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    (tmp_path / "net.py").write_text(SEQUENCE)
    source, target = WithoutConvolution(), load_target("corstone-300-m55")
    case = Case("corstone-300-m55", str(tmp_path / "net.py"))
    (program,) = export_cases([case], {case.target: target})
    assert isinstance(program, Program)
    said: list[str] = []
    with pytest.raises(RunnerLacks) as caught:
        require_possible(case, target, source, program, ExportOptions(), said.append)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("`layout: explicit` in the model's YAML file (tried:")
    assert said, "an export takes more than 2 s"
