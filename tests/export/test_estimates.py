"""Vela's estimates: those of the very stream that the program has, by layer of the model."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.export.estimates import CAVEAT, read_estimate
from harness.export.program import Program
from harness.export.request import NpuOptions
from harness.npu.blob import read_blob

Get = Callable[..., Program]
U55 = "ethos-u55-128"
MODELS, NPUS = (
    ("add", "ds_cnn", "resnet8", "deep_autoencoder"),
    (U55, "ethos-u65-512", "ethos-u85-256"),
)
FEW = {("ds_cnn", U55), ("add", NPUS[1]), ("deep_autoencoder", NPUS[2])}
CASES = [
    pytest.param(m, n, marks=[] if (m, n) in FEW else pytest.mark.thorough)
    for m in MODELS
    for n in NPUS
]


@pytest.mark.parametrize(("model", "npu"), CASES)
def test_the_estimate_is_velas_summary_of_that_stream(
    exported: Get, tmp_path: Path, model: str, npu: str
) -> None:
    """Vela itself compiles each graph once more, as a user would call it."""
    program = exported(model, npu)
    assert program.delegates
    for index, delegate in enumerate(program.delegates):
        folder = tmp_path / str(index)
        summary, commands = by_vela(program.directory / delegate.tosa, program.npu, folder)
        assert commands == read_blob((program.directory / delegate.blob).read_bytes()).commands
        estimate = delegate.estimate
        assert estimate is not None
        assert {n: float(summary[n]) for n in estimate.summary} == estimate.summary
        assert sum(o.cycles for o in estimate.operators) == pytest.approx(estimate.cycles, abs=1)
    cost = program.npu_cost
    assert cost is not None
    assert cost.cycles == sum(e.cycles for e in cost.estimates) > 0
    assert "ethos-u-vela" in cost.versions


def by_vela(graph: Path, npu: NpuOptions, folder: Path) -> tuple[dict[str, str], bytes]:
    flags = [
        f"--accelerator-config={npu.compile_target}",
        f"--system-config={npu.system_config}",
        f"--memory-mode={npu.memory_mode}",
        f"--output-dir={folder}",
    ]
    words = ["-m", "ethosu.vela", "--config=Arm/vela.ini", "--output-format=raw", *flags]
    subprocess.run([sys.executable, *words, graph], check=True, capture_output=True, timeout=300)
    with (folder / f"graph_summary_{npu.system_config}.csv").open() as file:
        (summary,) = csv.DictReader(file)
    with np.load(folder / "graph_vela.npz", allow_pickle=False) as data:
        return summary, data["cmd_data"].tobytes()


def test_the_summary_of_a_stream(exported: Get) -> None:
    """A linear layer of nine inputs and three outputs has 27 multiplications in any compiler."""
    (delegate,) = exported("linear", U55).delegates
    estimate = delegate.estimate
    assert estimate is not None
    summary = estimate.summary
    assert (estimate.npu, estimate.memory_mode) == (U55, "Shared_Sram")
    assert (summary["core_clock"], summary["nn_macs"]) == (500e6, 27)
    assert estimate.utilisation == 27 / (128 * summary["cycles_total"])
    text = estimate.text()
    assert f"{summary['cycles_total']:,.0f} cycles" in text
    assert "at 500 MHz" in text
    assert CAVEAT in text
    assert "on chip flash" not in text, "an area that is not used is not shown"


def test_each_operator_has_its_layer(exported: Get) -> None:
    """Values that the witness compared tell which layer a tensor of the TOSA graph is of. Two
    transposes at the end are Vela's work for the last layer before the pool."""
    first, last = exported("ds_cnn", U55).delegates
    assert first.estimate is not None
    assert last.estimate is not None
    blocks = [f"feature_extractor.{n}.{k}" for n in range(4, 8) for k in ("depthwise", "pointwise")]
    layers = [(o.layer, o.operator) for o in first.estimate.operators]
    assert [layer for layer, _ in layers] == ["feature_extractor.0", *blocks, *[blocks[-1]] * 2]
    assert all(("Depthwise" in o) == layer.endswith("depthwise") for layer, o in layers[1:-2])
    assert [(o.layer, o.macs) for o in last.estimate.operators] == [("classifier", 768)]


def test_without_an_npu_there_is_no_cost(exported: Get) -> None:
    assert exported("linear").npu_cost is None
    program = exported("linear", U55)
    unknown = replace(program, delegates=(replace(program.delegates[0], estimate=None),))
    assert unknown.npu_cost is None


@pytest.mark.parametrize("damage", ["no table", "a column is gone", "no number"])
def test_tables_of_another_vela_are_no_estimate(tmp_path: Path, damage: str) -> None:
    options = NpuOptions(U55, "Config", "Shared_Sram")
    layers = "NNG Operator,Name,Op Cycles,MAC Count\nConv2D,a,10,x\n"
    if damage == "a column is gone":
        layers = layers.replace("Op Cycles", "Cycles").replace("x", "1")
    if damage != "no table":
        (tmp_path / "out_per-layer.csv").write_text(layers)
    (tmp_path / "out_summary_Config.csv").write_text("cycles_total\n10\n")
    assert read_estimate(tmp_path, "out", options) is None
