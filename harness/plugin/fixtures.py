"""The fixtures: each stage of the pipeline for the case of a test.

Their names begin with ``hil_``, so that they meet neither a user's own nor another plugin's;
``executorch_hil.short_names`` has them without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.config.case import Case
from harness.core.errors import FvpMissing, HarnessError
from harness.plugin.options import (
    exporter_choice,
    firmware_choice,
    is_strict,
    option_value,
    simulator_of,
)
from harness.plugin.verdicts import RECORD, error_text, junit_properties

if TYPE_CHECKING:
    from harness.config.target import Target
    from harness.export.checkout import CheckoutExporter
    from harness.export.process import ExportProcess
    from harness.export.program import Program
    from harness.firmware.checkout import Checkout
    from harness.firmware.source import Firmware, FirmwareSource
    from harness.judge.reference import Reference
    from harness.run.record import RunRecord


@contextmanager
def _failing() -> Iterator[None]:
    """Fail the test in a sentence, whatever goes wrong in a fixture.

    A defect of the harness shows its traceback, too."""
    from harness.system.unexpected import Unforeseen, as_harness_error

    try:
        yield
    except Exception as error:
        failure = as_harness_error(error)
        pytest.fail(error_text(failure), pytrace=isinstance(failure, Unforeseen))


@pytest.fixture(scope="session")
def hil_case(request: pytest.FixtureRequest) -> Case:
    """Return the model and target this test runs for."""
    chosen: Case = request.param
    return chosen


@pytest.fixture(scope="session")
def hil_target(hil_case: Case) -> Target:
    """Return the target's description."""
    from harness.config.loading import load_target

    with _failing():
        return load_target(hil_case.target)


@pytest.fixture(scope="session")
def hil_exporter(request: pytest.FixtureRequest) -> CheckoutExporter | None:
    """Return the checkout whose Python exports; None: the installed wheel's."""
    from harness.export.checkout import selected_exporter

    with _failing():
        return selected_exporter(exporter_choice(request.config))


@pytest.fixture(scope="session")
def hil_export_process(hil_exporter: CheckoutExporter | None) -> Iterator[ExportProcess]:
    """Export the programs of the session.

    It starts with the first that is not cached, and takes seconds to: each worker has one."""
    from harness.export.process import ExportProcess

    with ExportProcess(hil_exporter) as process:
        yield process


@pytest.fixture(scope="session")
def hil_program(
    hil_case: Case,
    hil_target: Target,
    hil_exporter: CheckoutExporter | None,
    hil_export_process: ExportProcess,
) -> Program:
    """Return the exported program with inputs and expected outputs.

    Each worker exports what its own test needs, so that workers export side by side and the first
    result does not wait for the last export."""
    from harness.export.batch import ExportOptions
    from harness.run.subjects import export_cases

    with _failing():
        exported = export_cases(
            [hil_case],
            {hil_case.target: hil_target},
            options=ExportOptions(hil_exporter),
            process=hil_export_process,
        )[0]
        if isinstance(exported, HarnessError):
            raise exported
    return exported


@pytest.fixture(scope="session")
def hil_firmware_source(request: pytest.FixtureRequest) -> FirmwareSource:
    """Whose firmware the test runs: "bundled", "executorch" or "wheel"."""
    from harness.firmware.names import BUNDLED
    from harness.firmware.source import source_named

    chosen: FirmwareSource | None = getattr(request, "param", None)
    return source_named(BUNDLED) if chosen is None else chosen


@pytest.fixture(scope="session")
def hil_checkout(request: pytest.FixtureRequest) -> Checkout | None:
    """Return the checkout of ExecuTorch under test; None when there is none."""
    with _failing():
        return firmware_choice(request.config).checkout()


@pytest.fixture(scope="session")
def hil_firmware(
    hil_target: Target,
    hil_firmware_source: FirmwareSource,
    hil_checkout: Checkout | None,
    request: pytest.FixtureRequest,
) -> Firmware:
    """Return the runner built for the target; one build per key, whoever comes first."""
    from harness.firmware.source import BuildRequest
    from harness.sim.simulator import pick

    with _failing():
        chosen = pick(hil_target, simulator_of(request.config))
        request_ = BuildRequest(chosen.target, chosen.name, hil_checkout)
        return hil_firmware_source.build(request_)


@pytest.fixture(scope="session")
def hil_reference(hil_case: Case, hil_firmware_source: FirmwareSource) -> Reference | None:
    """Return the accepted reference run of the case with this firmware, or None."""
    from harness.judge.reference import load_reference, references_of

    with _failing():
        return load_reference(references_of(hil_case), hil_case, hil_firmware_source.name)


@pytest.fixture
def hil_run(
    hil_case: Case,
    hil_target: Target,
    hil_program: Program,
    hil_firmware: Firmware,
    request: pytest.FixtureRequest,
    record_property: Any,
) -> RunRecord:
    """Return a finished run of the case.

    Its verdict is PASS, or one that ``hil_expect`` names: else the test fails. JUnit gets verdict,
    cause, notes and figures as properties."""
    from harness.run.pipeline import RunOptions, run_case
    from harness.sim.simulator import pick

    config = request.config
    options = RunOptions(
        simulator=simulator_of(config),
        limit_factor=option_value(config, "limit-factor"),
        fvp_missing=option_value(config, "fvp-missing"),
        strict=is_strict(config),
        allow_new=tuple(option_value(config, "allow-new") or ()),
    )
    with _failing():
        chosen = pick(hil_target, options.simulator)
        try:
            record = run_case(hil_case, chosen, hil_program, hil_firmware, options)
        except FvpMissing as error:
            record_property("verdict", error.verdict.value)
            pytest.skip(error_text(error))
    request.node.stash[RECORD] = record
    for name, value in junit_properties(record):
        record_property(name, value)
    return record
