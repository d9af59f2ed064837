"""Eager and lowered values find each other in any layout of any rank, and only those are blamed.

Protects the one check that an operator means to TOSA what it meant to PyTorch: with a pairing that
misses layouts a right network is EXPORT_ERROR with ExecuTorch blamed, as a deep stack of Conv1d
was. A thorough run has random networks, too, of ranks 1 to 5.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.config.models import ModelSource
from harness.export.batch import export
from harness.export.failures import DeadModelError, LoweringDiffers, NothingDelegated, StageFailed
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from tests.late import Late
from tests.thorough import amount

bounds = Late("harness.export.child.bounds")
program_values = Late("harness.export.child.program_values")
torch = Late("torch")

Write = Callable[..., ModelSource]
U55 = "ethos-u55-128"
GRAPHS = amount(0, 300)
IN_TIME = f"""
import torch
torch.manual_seed(1)
layers = [torch.nn.Conv1d(13, 24, 9, stride=2, padding=4), torch.nn.ReLU()]
for _ in range({amount(2, 8)}):
    layers += [torch.nn.Conv1d(24, 24, 7, padding=3), torch.nn.ReLU()]
ModelUnderTest = torch.nn.Sequential(*layers, torch.nn.Conv1d(24, 29, 1)).eval()
ModelInputs = (torch.randn(1, 13, 48),)
"""


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_value_finds_its_partner_in_any_order_of_dimensions(rank: int) -> None:
    generator = np.random.default_rng(rank)
    value = generator.integers(-128, 127, (2, 3, 4, 5, 6)[:rank], dtype=np.int8)
    for layout in (tuple(range(rank))[::-1], tuple(generator.permutation(rank))):
        partner = _partner((value + 1).transpose(layout), value, within=1)
        assert partner is not None
        assert (partner.value.numpy() == value + 1).all()


def test_a_value_that_is_further_away_is_not_a_partner() -> None:
    value = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    wrong = value.copy()
    wrong[1, 2, 3] += 2
    assert _partner(wrong, value, within=1) is None
    assert _partner(wrong, value, within=2) is not None


def test_a_bound_may_differ_from_element_to_element() -> None:
    value = np.zeros(4, np.int16)
    other = np.array([0, 5, 0, 0], np.int16)
    assert _partner(other, value, within=torch.tensor([0, 5, 0, 0])) is not None
    assert _partner(other, value, within=torch.tensor([5, 4, 5, 5])) is None


def test_of_two_values_the_operators_own_one_is_taken() -> None:
    value = torch.zeros(3, dtype=torch.int8)
    others = [
        program_values.ProgramValue(np.zeros(3, np.int8)),
        program_values.ProgramValue(np.ones(3, np.int8), "add"),
    ]
    candidates = program_values.Candidates(others, ())
    assert candidates.partner(_region("add"), value, 1).number == 1
    assert candidates.partner(_region("mul"), value, 1).number == 0


def test_another_operators_value_is_not_a_claim_however_it_is_named() -> None:
    """Else the witness would accuse by it again and again, and never end."""
    value = torch.zeros(3, dtype=torch.int8)
    values = [program_values.ProgramValue(np.full(3, 9, np.int8), "add")]
    claims, _ = program_values.Candidates(values, ()).claims(_region("add"), value)
    assert {claim.number for claim in claims} == {0}
    assert program_values.Candidates(values, {0}).claims(_region("add"), value) == ([], False)


def test_a_constant_is_a_partner_but_nothing_that_was_computed_instead() -> None:
    """A program folds the constants of a batch norm; as claims they accused right operators."""
    value = torch.zeros(3, dtype=torch.int8)
    constant = program_values.ProgramValue(np.zeros(3, np.int8), "add", is_constant=True)
    candidates = program_values.Candidates([constant], ())
    assert candidates.partner(_region("add"), value, 0).number == 0
    assert candidates.claims(_region("add"), value) == ([], False)


def _partner(candidate: Any, value: Any, within: Any) -> Any:
    candidates = program_values.Candidates([program_values.ProgramValue(candidate)], ())
    return candidates.partner(_region("add"), torch.from_numpy(value), within)


def _region(name: str) -> Any:
    graph = torch.fx.Graph()
    node = graph.create_node("placeholder", name, name=name)
    return bounds.QuantizedRegion((), (), node)


def _random_network(seed: int) -> str:
    """Two to six operators on values of rank 1 to 5, as a model file."""
    r = random.Random(seed)
    rank = seed % 5 + 1
    shape = [1, *(r.randint(2, 7) for _ in range(rank - 1))] if rank > 1 else [r.randint(4, 40)]
    choices = ["x = torch.relu(x)", "x = x + y", "x = x * y", "x = torch.sigmoid(x) - 0.3 * y"]
    if rank > 1:
        order = [0, *r.sample(range(1, rank), rank - 1)]
        choices += [
            f"x, y = x.permute({order}), y.permute({order})",
            f"x, y = torch.cat((x, y), {rank - 1}), torch.cat((y, y), {rank - 1})",
            "x = x.flatten(1).reshape(x.shape)",
            "linear",
        ]
    choices += ["conv"] * (2 if rank in (3, 4) else 0)
    body, layers = "", ""
    for number in range(r.randint(2, 6)):
        line = r.choice(choices)
        if line in ("linear", "conv"):
            kind = "Linear(5" if line == "linear" else f"Conv{rank - 2}d(6, 3, padding=1"
            layers += f"        self.layer{number} = torch.nn.Lazy{kind})\n"
            line = f"x, y = self.layer{number}(x), self.layer{number}(y)"
        body += f"        {line}\n"
    return f"""
import torch
torch.manual_seed({seed})
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
{layers}    def forward(self, x, y):
{body}        return x + y
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn({shape}), torch.randn({shape}))
ModelUnderTest(*ModelInputs)
"""


@pytest.mark.parametrize("target", [U55, "cortex-m55"])
def test_no_network_is_blamed(
    target: str,
    user_model: Write,
    hil_export_process: ExportProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """wav2letter's convolutions, whose values TOSA has as (1, 1, time, channels), and random
    ones."""
    refused, known, blamed = [], [], []
    for number, text in enumerate((IN_TIME, *map(_random_network, range(GRAPHS)))):
        request = ExportRequest(user_model(text, f"network{number}.py"), target)
        (result,) = export([request], process=hil_export_process)
        if isinstance(result.error, NothingDelegated | StageFailed | DeadModelError):
            refused.append(f"network {number}: {result.error}")
            continue
        if isinstance(result.error, LoweringDiffers) and result.error.known:
            known.append(f"network {number}: {result.error.known}")
            continue
        if result.error is not None:
            blamed.append(f"network {number}: {result.error}")
    with capsys.disabled():
        print("refused:", *refused, "known:", *known, sep="\n") if refused or known else None
    assert not blamed
    assert len(refused) <= 0.4 * GRAPHS
