"""What an Ethos-U leaves to the CPU, and whether the rule that is told is the one that keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.config.known import refusals, way_round
from harness.config.models import ModelSource
from harness.core.errors import HarnessError
from harness.export.program import Program

Write = Callable[[str], ModelSource]
# For each way round of npu_refusals.yaml: an operator that breaks the rule, and one that does not.
PAIRS = {
    "uneven-average": ("F.avg_pool2d(x, (12, 16))", "F.avg_pool2d(x[:, :, :12], (12, 16), 1)"),
    "pool-stride": ("F.avg_pool2d(x, 2, 4)", "F.avg_pool2d(x, 2, 3)"),
    "pool-batch": ("F.avg_pool2d(both, 2, 2)", "F.avg_pool2d(x, 2, 2)"),
    "dilated-pool": ("F.max_pool2d(x, 2, 2, 0, 2)", "F.max_pool2d(x, 2, 1, 0, 2)"),
    "convolution-kernel": ("self.wide(long)", "self.narrow(long)"),
    "convolution-stride": ("self.far(x)", "self.near(x)"),
    "transposed-stride": ("self.apart(x)", "self.close(x)"),
    "transposed-dilation": ("self.dilated(x)", "self.close(x)"),
    "transposed-groups": ("self.grouped(x)", "self.close(x)"),
    "nearest-scale": (
        "F.interpolate(x, scale_factor=3.0, mode='nearest')",
        "F.interpolate(x, scale_factor=2.0, mode='nearest')",
    ),
    "flipped-width": (
        "torch.flip(x, (3,))",
        "torch.flip(x.transpose(2, 3), (2,)).transpose(2, 3)",
    ),
    "boolean": ("torch.where(x > 0, x, x * 0.1)", "F.leaky_relu(x, 0.1)"),
    "rank": (
        "x.reshape(1, 2, 2, 2, 8, 4, 4).transpose(4, 5)",
        "x.reshape(1, 8, 8, 4, 4).transpose(2, 3)",
    ),
    "index": ("x[:, torch.tensor([3, 1])]", "torch.cat([x[:, 3:], x[:, 1:2]], 1)"),
}
MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(4, 4, 1)
        self.wide, self.narrow = nn.Conv2d(4, 4, (2, 65)), nn.Conv2d(4, 4, (2, 64))
        self.far, self.near = nn.Conv2d(4, 4, 3, 4, 1), nn.Conv2d(4, 4, 3, 3, 1)
        self.apart, self.close = nn.ConvTranspose2d(4, 4, 3, 3), nn.ConvTranspose2d(4, 4, 3, 2)
        self.dilated = nn.ConvTranspose2d(4, 4, 3, 2, dilation=2)
        self.grouped = nn.ConvTranspose2d(4, 4, 3, 2, groups=2)

    def forward(self, x):
        x = self.first(x)
        both = torch.cat([x, x])
        long = x.reshape(1, 4, 2, 128)
        return (
            {lines},
        )
ModelUnderTest = Mine()
ModelInputs = (torch.rand(1, 4, 16, 16) - 0.5,)
"""
_LINES = [line for pair in PAIRS.values() for line in pair]


def test_the_told_rule_is_true(user_model: Write, exported: Callable[..., Program]) -> None:
    """One export of all pairs; the line of the model tells the operators apart."""
    text = MODEL.replace("{lines}", ",\n            ".join(_LINES))
    first = text[: text.index(_LINES[0])].count("\n") + 1
    program = exported(user_model(text), "ethos-u55-128")
    assert program.delegation is not None
    kept = {each.line: each for each in program.delegation.cpu}
    for number, (name, row) in enumerate(refusals().items()):
        breaks, keeps = first + 2 * number, first + 2 * number + 1
        assert breaks in kept, f"{name}: {_LINES[2 * number]} is on the NPU"
        assert way_round(kept[breaks].why) == row["instead"], kept[breaks].why
        assert keeps not in kept, f"{name}: {kept[keeps]}"
        assert kept[breaks].instructions
        assert kept[breaks].file == "mine.py"
    layers = {each.layer for each in program.delegation.cpu}
    assert {"wide", "far", "apart", "dilated", "grouped"} <= layers


def test_a_shipped_model_names_its_layer_and_what_is_quantised_for_it(
    exported: Callable[..., Program],
) -> None:
    """ds_cnn pools 25 rows with a kernel of 24. ExecuTorch rewrites the pool, so that its line is
    known from the model alone."""
    delegation = exported("ds_cnn", "ethos-u55-128").delegation
    assert delegation is not None
    (pool,) = delegation.cpu
    assert (pool.operator, pool.layer, pool.file) == ("avg_pool2d", "pool", "ds_cnn.py")
    assert pool.why == "Avgpool2d with padding needs kernel dims < 8, got [24, 5]"
    assert (pool.instructions, pool.conversions) == ((3,), (2, 4))
    assert delegation.total > 14
    u85 = exported("ds_cnn", "ethos-u85-256").delegation
    assert u85 is not None
    assert u85.cpu == ()
    assert exported("ds_cnn").delegation is None


def test_a_model_of_which_nothing_is_left_says_why(
    user_model: Write, failure: Callable[..., HarnessError]
) -> None:
    error = failure(
        user_model("""
import torch
class OnCpu(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x)[0]
ModelUnderTest = OnCpu()
ModelInputs = (torch.rand(2, 4),)
"""),
        "ethos-u55-128",
    )
    assert "sort (mine.py:5): Not included in BaseTOSASupportList" in error.message


@pytest.mark.parametrize("why", ["", "Not included in BaseTOSASupportList"])
def test_a_rule_without_a_known_way(why: str) -> None:
    assert way_round(why) == ""


def test_every_way_has_its_pair() -> None:
    assert list(refusals()) == list(PAIRS)
