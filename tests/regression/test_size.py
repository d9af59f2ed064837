"""What users run as ``pytest -m size``: every program and every runner against its budgets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from harness.config.case import RUNNER, Case
from harness.config.loading import Target
from harness.export.program import Program
from harness.firmware.firmware import Firmware
from harness.report.size import workflow_commands, write_summary
from harness.run.gate import Gate, hold_measured
from harness.run.measure import measure_firmware, measure_program

pytestmark = pytest.mark.size


@pytest.fixture
def require_gate(
    record_property: Callable[[str, Any], None], capsys: pytest.CaptureFixture[str]
) -> Callable[[Gate], None]:
    """Report a gate everywhere it may be read, then fail the test if it failed."""

    def require(gate: Gate) -> None:
        for finding in gate.findings:
            record_property(finding.figure, finding.measured)
            record_property(f"{finding.figure}_accepted", finding.accepted)
        record_property("size_state", gate.summary()["state"])
        with capsys.disabled():
            for line in workflow_commands([gate], os.environ):
                print(f"\n{line}")
        if gate.failed:
            write_summary([gate], os.environ)
            pytest.fail(gate.message(), pytrace=False)

    return require


def test_program(
    hil_case: Case, hil_program: Program, require_gate: Callable[[Gate], None]
) -> None:
    require_gate(hold_measured(measure_program(hil_case, hil_program)))


# One per target. The model does not matter; this one is exported anyway.
@pytest.mark.hil_cases(models=["ds_cnn"])
def test_runner(
    hil_target: Target, hil_firmware: Firmware, require_gate: Callable[[Gate], None]
) -> None:
    if not hil_target.memory:
        pytest.skip(f"{hil_target.name} has no memory map: its runner's size is of no interest")
    subject = Case(hil_target.name, RUNNER)
    require_gate(hold_measured(measure_firmware(subject, hil_firmware)))
