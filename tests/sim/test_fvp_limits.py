"""A limit that a small network keeps is none that a large one meets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.models import find_model
from harness.config.target import Limits
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from harness.sim import fvp
from harness.sim.fvp_limits import fitting, products_of
from harness.sim.simulator import GuestJob

LIMITS = Limits(host=300, stall=20, model=240, simulated=120)


def program_of(name: str, process: ExportProcess, target: str = "cortex-m55") -> Path:
    request = ExportRequest(find_model(name), target)
    return export([request], process=process)[0].unwrap().pte_path


@pytest.mark.parametrize(("name", "products"), [("ds_cnn", 2_656_768), ("resnet8", 12_501_632)])
def test_products_are_those_of_the_network(
    hil_export_process: ExportProcess, name: str, products: int
) -> None:
    """From above, and not by much: MLPerf Tiny's networks have 2.7 and 12.5 million."""
    found = products_of(program_of(name, hil_export_process))
    assert products <= found < 1.5 * products


def test_the_targets_values_are_the_floor(hil_export_process: ExportProcess) -> None:
    assert fitting(LIMITS, program_of("add", hil_export_process), 3) == LIMITS


def test_a_large_network_gets_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MobileNetV2 has 300 million products; its instructions at the models' clock, and a host that
    simulates five million of them in a second. The harness still ends last."""
    monkeypatch.setattr("harness.sim.fvp_limits.products_of", lambda _path: 300_000_000)
    limits = fitting(LIMITS, tmp_path, 3)
    assert limits.simulated == pytest.approx(576)
    assert limits.model == pytest.approx(2880)
    assert limits.host == pytest.approx(2940)
    assert fitting(replace(LIMITS, model=None, simulated=None), tmp_path, 3).host == LIMITS.host


def test_a_file_that_is_not_a_program_has_the_floor(tmp_path: Path) -> None:
    (tmp_path / "x.pte").write_bytes(b"nothing")
    assert fitting(LIMITS, tmp_path / "x.pte", 3) == LIMITS


def test_fast_mode_is_a_parameter_and_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "extends: corstone-320-u85-256\nsimulators:\n  auto: [fvp]\n  fvp:\n"
        "    model: sse-320\n    fast: true\n"
    )
    target = load_target("mine", (*target_directories({}), tmp_path))
    settings = target.simulators.fvp
    assert settings is not None
    words = fvp.argv("/f", settings, GuestJob(Path("/e"), ("r",), tmp_path, LIMITS))
    assert "mps4_board.subsystem.ethosu.extra_args=--fast" in words
    model = tmp_path / settings.executable
    model.write_text("#!/bin/sh\n")
    model.chmod(0o755)
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    chosen = fvp.SIMULATOR
    job = fvp.GuestJob(Path("/e"), ("r",), tmp_path, LIMITS)
    launch = chosen.launch(target, chosen.require(target), job)
    assert "the NPU's model runs with --fast: its cycles are not the NPU's" in launch.stands_in
