"""Whole models against the TOSA reference model, on every NPU and in every memory mode; on a push a
small one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs ExecuTorch and Vela")

from harness.config.models import find_model
from harness.export.request import ExportRequest
from harness.npu.model import Network
from tests.late import Late
from tests.npu import compiling

loading = Late("harness.export.child.source")

# As ds_cnn begins and ends: a U55 leaves the pooling to the CPU, between two delegates.
SEPARABLE = """
import torch
from torch import nn
torch.manual_seed(1)
ModelUnderTest = nn.Sequential(
    nn.Conv2d(1, 20, (10, 4), 2, (5, 1)), nn.ReLU(), nn.Conv2d(20, 20, 3, 1, 1, groups=20),
    nn.ReLU(), nn.Conv2d(20, 24, 1), nn.ReLU(), nn.AvgPool2d((13, 5)), nn.Flatten(),
    nn.Linear(24, 12))
ModelInputs = (torch.randn(1, 1, 25, 10),)
"""
LARGE = ("deep_autoencoder", "ds_cnn", "mobilenet_v1_025", "resnet8")
SMALL = ("add", "linear", "softmax")
BASES = ("ethos-u55-128", "ethos-u85-256")
SIZES = {
    "ethos-u55-128": ("ethos-u55-32", "ethos-u55-64", "ethos-u55-256"),
    "ethos-u85-256": ("ethos-u85-128", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"),
    "ethos-u65-256": ("ethos-u65-512",),
}
MODES = {
    "ethos-u55-128": ("Sram_Only", "Shared_Sram"),
    "ethos-u85-256": ("Sram_Only", "Shared_Sram", "Dedicated_Sram_384KB"),
    "ethos-u65-256": ("Sram_Only", "Shared_Sram", "Dedicated_Sram_384KB"),
}


def compile_live(name: str, target: str) -> list[object]:
    from harness.export.child.worker import _prepare

    source = find_model(name)
    loaded = loading.load_model(source)
    calibration, sets, _ = _prepare(ExportRequest(source), loaded)
    return compiling.compile_module(loaded.module, sets[0], target, calibration=calibration)


def check(delegate: object) -> None:
    inputs = compiling.random_inputs(delegate.tosa, np.random.default_rng(1))
    expected = [v.tobytes() for v in compiling.reference(delegate.tosa, inputs)]
    assert Network(delegate.blob).run([v.tobytes() for v in inputs])[0] == expected


def check_everywhere(name: str, base: str) -> int:
    """The base NPU, its other MAC counts and the memory modes, from one TOSA graph. Returns the
    number of delegates."""
    delegates = compile_live(name, base)
    for delegate in delegates:
        check(delegate)
        for target in SIZES[base]:
            check(compiling.recompile(delegate.tosa, target))
        for mode in MODES[base]:
            check(compiling.recompile(delegate.tosa, base, mode))
    return len(delegates)


@pytest.mark.parametrize("base", BASES)
def test_separable_convolutions_everywhere(base: str, tmp_path: Path) -> None:
    (tmp_path / "separable.py").write_text(SEPARABLE)
    assert check_everywhere(str(tmp_path / "separable.py"), base) == (2 if "u55" in base else 1)


@pytest.mark.thorough
@pytest.mark.parametrize("base", SIZES)
@pytest.mark.parametrize("name", [*LARGE, *SMALL])
def test_model_everywhere(name: str, base: str) -> None:
    check_everywhere(name, base)
