"""A program that calls operators of ``kernels/portable`` gets a runner with them, no other does."""

from __future__ import annotations

import re

import pytest

from harness.config.case import Case
from harness.firmware.sources.bundled import SOURCE
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from tests.thorough import is_thorough
from tools.clone import project_root

HEAD = """
import torch
from torch import nn
torch.manual_seed(1)
"""
RECURRENT = """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.{kind}(8, 16, batch_first=True)
        self.scores = nn.Linear(16, 4)
    def forward(self, x):
        return self.scores(self.recurrent(x)[0][:, -1])
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 2, 8),)
"""
MODELS = {
    "lstm": RECURRENT.format(kind="LSTM"),
    "gru": RECURRENT.format(kind="GRU"),
    "convolutions": """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(8, 12, 3, dilation=2), nn.ReLU())
        self.scores = nn.Linear(12, 4)
    def forward(self, x):
        return self.scores(self.layers(x).mean(2))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 8, 16),)
""",
    "transformer": """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.scores = nn.Linear(16, 4)
    def forward(self, x):
        return self.scores(self.layer(self.words(x)).mean(1))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randint(0, 20, (1, 6)),)
""",
    "activations": """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.LeakyReLU(0.1), nn.Conv2d(8, 8, 3), nn.ELU(), nn.Conv2d(8, 4, 1))
    def forward(self, x):
        return self.layers(x).mean((2, 3))
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
""",
}


@pytest.fixture(scope="module")
def records(shared_hil_home: str, tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    folder = tmp_path_factory.mktemp("models")
    for name, text in MODELS.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    recurrent = ["lstm", "gru"] if is_thorough() else ["lstm"]
    names = [*recurrent, "convolutions", "transformer", "activations"]
    models = [*(str(folder / f"{name}.py") for name in names), "qadd"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        cases = [Case("corstone-300-m55", model) for model in models]
        return run_cases(cases, RunOptions(strict=False))


def test_networks_with_recurrence_attention_and_convolutions_in_time_are_exact(
    records: list[RunRecord],
) -> None:
    for record in records:
        assert record.verdict == "PASS", record.cause
        assert record.worst_lsb == 0


def test_only_a_program_that_calls_them_pays_for_them(records: list[RunRecord]) -> None:
    text = [record.static_metrics["elf_ITCM"] for record in records]
    assert all(text[-1] < size < text[-1] + 40960 for size in text[:-1])


@pytest.mark.parametrize(
    ("operator", "built_in"), [("aten::tanh.out", True), ("aten::add.out", False), ("a::b", False)]
)
def test_what_the_source_can_add(operator: str, built_in: bool) -> None:
    added = {"HIL_PORTABLE_KERNELS": operator} if built_in else {}
    assert SOURCE.options_for(("x::y", operator)) == added
    assert SOURCE.options_for(()) == {}


def test_every_operator_of_the_folder_is_known_by_its_line() -> None:
    """One that is not would be built in for nobody."""
    folder = project_root() / "targets/runner/kernels"
    own = "".join(file.read_text() for file in folder.glob("op_*.cpp"))
    for file in (folder / "portable").glob("*.cpp"):
        names = re.findall(
            r'"((?:aten|dim_order_ops|quantized_decomposed)::[\w.]+)"', file.read_text()
        )
        assert all(SOURCE.options_for((name,)) for name in names if name not in own), file
