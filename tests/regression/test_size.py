"""What users run as ``pytest -m size``: every program and every runner against its budgets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.config.case import RUNNER, Case, is_allowed
from harness.config.target import Target
from harness.export.program import Program
from harness.firmware.source import Firmware
from harness.plugin.options import is_strict, option_value
from harness.report.size import summary, workflow_commands
from harness.report.summary import append_to_step_summary
from harness.run.gate import (
    Measured,
    hold_measured,
    left_over,
    measure_firmware,
    measure_program,
)
from harness.system.paths import references_dir

pytestmark = pytest.mark.size


@pytest.fixture
def require_gate(
    record_property: Callable[[str, Any], None],
    capsys: pytest.CaptureFixture[str],
    pytestconfig: pytest.Config,
) -> Callable[[Measured], None]:
    """Report a gate everywhere it may be read, then fail the test if it failed. In CI a subject
    fails that has no reference, but for those of --hil-allow-new."""
    allowed = option_value(pytestconfig, "allow-new") or []

    def require(measured: Measured) -> None:
        refuses_new = is_strict(pytestconfig) and not is_allowed(measured.case, allowed)
        gate = replace(hold_measured(measured), refuses_new=refuses_new)
        for finding in gate.findings:
            record_property(finding.figure, finding.measured)
            record_property(f"{finding.figure}_accepted", finding.accepted)
        record_property("size_state", gate.summary()["state"])
        with capsys.disabled():
            for line in workflow_commands([gate], os.environ):
                print(f"\n{line}")
        if gate.failed:
            append_to_step_summary(summary([gate]), os.environ)
            pytest.fail(gate.message(), pytrace=False)

    return require


def test_program(
    hil_case: Case, hil_program: Program, require_gate: Callable[[Measured], None]
) -> None:
    require_gate(measure_program(hil_case, hil_program))


# One per target. The model does not matter; this one is exported anyway.
@pytest.mark.hil_cases(models=["ds_cnn"])
def test_runner(
    hil_target: Target, hil_firmware: Firmware, require_gate: Callable[[Measured], None]
) -> None:
    if not hil_target.memory:
        pytest.skip(f"{hil_target.name} has no memory map: its runner's size is of no interest")
    subject = Case(hil_target.name, RUNNER)
    require_gate(measure_firmware(subject, hil_firmware))


def test_what_was_accepted_may_not_be_new(pytestconfig: pytest.Config) -> None:
    """Else a reference of this project that disappears is excused."""
    allowed = option_value(pytestconfig, "allow-new") or []
    files = (path.relative_to(references_dir()) for path in references_dir().glob("*/*.json"))
    accepted = [Case(str(file.parent), file.stem) for file in files]
    assert accepted
    assert [case.id for case in accepted if is_allowed(case, allowed)] == []


def test_no_reference_is_left_over(pytestconfig: pytest.Config) -> None:
    """A reference whose model is gone gates nothing."""
    found = left_over(strict=is_strict(pytestconfig))
    for one in found:
        warnings.warn(one.message(), stacklevel=1)
    if any(one.failed for one in found):
        pytest.fail("\n".join(one.message() for one in found), pytrace=False)
