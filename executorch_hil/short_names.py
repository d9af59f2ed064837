"""The plugin's fixtures under short names, for a conftest.py that wants them::

pytest_plugins = ["executorch_hil.short_names"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.config.case import Case
    from harness.config.target import Target
    from harness.export.program import Program
    from harness.firmware.source import Firmware, FirmwareSource
    from harness.judge.reference import Reference
    from harness.run.record import RunRecord


@pytest.fixture(scope="session")
def case(hil_case: Case) -> Case:
    """``hil_case``."""
    return hil_case


@pytest.fixture(scope="session")
def target(hil_target: Target) -> Target:
    """``hil_target``."""
    return hil_target


@pytest.fixture(scope="session")
def program(hil_program: Program) -> Program:
    """``hil_program``."""
    return hil_program


@pytest.fixture(scope="session")
def firmware_source(hil_firmware_source: FirmwareSource) -> FirmwareSource:
    """``hil_firmware_source``."""
    return hil_firmware_source


@pytest.fixture(scope="session")
def firmware(hil_firmware: Firmware) -> Firmware:
    """``hil_firmware``."""
    return hil_firmware


@pytest.fixture(scope="session")
def reference(hil_reference: Reference | None) -> Reference | None:
    """``hil_reference``."""
    return hil_reference


@pytest.fixture
def run(hil_run: RunRecord) -> RunRecord:
    """``hil_run``."""
    return hil_run
