"""Running a case of the Corstone-300 target on a double."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from harness.suites.standin.command_line import load_fvp_model
from tests.doubles.random_runs import SLOW
from tools.doubles import double_firmware, double_program, install_double

FVP = "FVP_Corstone_SSE-300_Ethos-U55"
# A starved process is as still as an idle one: `limit_factor` in a hil.toml gives it time.
LIMITS = Limits(host=5.0, stall=1.5, model=60.0, simulated=60.0)
_DEADLINE = 2.0  # of those that nothing else ends: they compute until then


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunRecord]:
    """Run a double that ends in a given way, through the whole pipeline."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    program = double_program(tmp_path / "program")
    firmware = double_firmware(tmp_path)
    board = load_target("corstone-300-m55", target_directories({}))

    def run(ending: str) -> RunRecord:
        limits = replace(LIMITS, host=_DEADLINE) if ending in SLOW else LIMITS
        target = replace(board, limits=limits)
        installed = tmp_path / f"fvp-{ending}"
        if not installed.exists():
            install_double(installed, FVP, ending, load_fvp_model(FVP).parameters)
        monkeypatch.setenv("HIL_FVP_DIR", str(installed))
        chosen = pick(target, "fvp")
        return run_case(Case(target.name, "add"), chosen, program, firmware, RunOptions())  # type: ignore[arg-type]

    return run
