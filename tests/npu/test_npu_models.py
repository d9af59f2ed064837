"""Whole models against the TOSA reference model, on every NPU and in every memory mode."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs ExecuTorch and Vela")

from harness.config.models import find_model
from harness.export.request import ExportRequest
from harness.npu.model import Network
from tests.late import Late
from tests.npu import compiling

loading = Late("harness.export.child.source")

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
    calibration, sets = _prepare(ExportRequest(source), loaded)
    return compiling.compile_module(loaded.module, sets[0], target, calibration=calibration)


def check(delegate: object) -> None:
    inputs = compiling.random_inputs(delegate.tosa, np.random.default_rng(1))
    expected = [v.tobytes() for v in compiling.reference(delegate.tosa, inputs)]
    assert Network(delegate.blob).run([v.tobytes() for v in inputs])[0] == expected


def check_everywhere(name: str, base: str) -> None:
    """The base NPU, its other MAC counts and the memory modes, from one TOSA graph."""
    for delegate in compile_live(name, base):
        check(delegate)
        for target in SIZES[base]:
            check(compiling.recompile(delegate.tosa, target))
        for mode in MODES[base]:
            check(compiling.recompile(delegate.tosa, base, mode))


@pytest.mark.parametrize("base", BASES)
def test_ds_cnn_everywhere(base: str) -> None:
    check_everywhere("ds_cnn", base)


@pytest.mark.thorough
@pytest.mark.parametrize("base", SIZES)
@pytest.mark.parametrize("name", [*LARGE, *SMALL])
def test_model_everywhere(name: str, base: str) -> None:
    check_everywhere(name, base)
