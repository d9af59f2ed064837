"""The fixtures: each stage of the pipeline for the case of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from harness.case.case import Case
from harness.errors import FvpMissing, HarnessError
from harness.plugin.faces import properties
from harness.plugin.options import exporter_choice, firmware_choice
from harness.plugin.proof import RECORD, explained

if TYPE_CHECKING:
    from harness.build.executorch.checkout import Checkout
    from harness.build.firmware import Firmware
    from harness.build.source import FirmwareSource
    from harness.export.program import Program
    from harness.judge.reference import Reference
    from harness.run.record import RunRecord
    from harness.target.loading import Target


@contextmanager
def _failing() -> Iterator[None]:
    """The boundary of a fixture: whatever goes wrong fails the test in a sentence."""
    from harness.system.boundary import debugging, told

    try:
        yield
    except Exception as error:
        pytest.fail(explained(told(error)), pytrace=debugging())


@pytest.fixture(scope="session")
def case(request: pytest.FixtureRequest) -> Case:
    """The model and target this test runs for."""
    chosen: Case = request.param
    return chosen


@pytest.fixture(scope="session")
def target(case: Case) -> Target:
    """The target's description."""
    from harness.target.loading import load_target

    with _failing():
        return load_target(case.target)


@pytest.fixture(scope="session")
def program(case: Case, request: pytest.FixtureRequest) -> Program:
    """The exported program with inputs and expected outputs.

    The first test that needs one exports those of all collected cases, so that torch is
    imported once, whatever the number of workers.
    """
    from filelock import FileLock

    from harness.run.exports import export_cases
    from harness.system.paths import cache_dir
    from harness.target.loading import load_target

    wanted = [case, *(c for c in _collected(request.session) if c != case)]
    with _failing():
        targets = {name: load_target(name) for name in {c.target for c in wanted}}
        cache_dir("programs").mkdir(parents=True, exist_ok=True)
        exporter = exporter_choice(request.config).find()
        with FileLock(cache_dir("programs") / "batch.lock"):
            exported = export_cases(wanted, targets, exporter=exporter)[0]
        if isinstance(exported, HarnessError):
            raise exported
    return exported


def _collected(session: pytest.Session) -> list[Case]:
    """The cases of all selected tests, without repetition."""
    cases = [
        item.callspec.params["case"]
        for item in session.items
        if hasattr(item, "callspec") and "case" in item.callspec.params
    ]
    return list(dict.fromkeys(c for c in cases if isinstance(c, Case)))


@pytest.fixture(scope="session")
def firmware_source(request: pytest.FixtureRequest) -> FirmwareSource:
    """Whose firmware the test runs: "bundled" or "executorch"."""
    from harness.build.source import FirmwareSource

    return FirmwareSource(getattr(request, "param", FirmwareSource.BUNDLED))


@pytest.fixture(scope="session")
def hil_checkout(request: pytest.FixtureRequest) -> Checkout | None:
    """The checkout of ExecuTorch under test; None when there is none."""
    with _failing():
        return firmware_choice(request.config).checkout()


@pytest.fixture(scope="session")
def firmware(
    target: Target,
    firmware_source: FirmwareSource,
    hil_checkout: Checkout | None,
    request: pytest.FixtureRequest,
) -> Firmware:
    """The runner built for the target; one build per key, whoever comes first."""
    from harness.build.choice import build_for
    from harness.simulate.pick import pick

    with _failing():
        chosen = pick(target, request.config.getoption("--simulator"))
        return build_for(firmware_source, chosen.target, chosen.name, hil_checkout)


@pytest.fixture(scope="session")
def reference(case: Case, firmware_source: FirmwareSource) -> Reference | None:
    """The accepted reference run of the case with this firmware; None when none was accepted."""
    from harness.judge.reference import load_reference, references_of

    with _failing():
        return load_reference(references_of(case), case, firmware_source)


@pytest.fixture
def run(
    case: Case,
    target: Target,
    program: Program,
    firmware: Firmware,
    request: pytest.FixtureRequest,
    record_property: Any,
) -> RunRecord:
    """A finished run of the case. Its verdict is PASS, or one that ``hil_expect`` names: else the
    test fails. JUnit gets verdict, cause, notes and figures as properties."""
    from harness.run.pipeline import RunOptions, run_case
    from harness.simulate.fvp import missing_policy
    from harness.simulate.pick import pick

    option = request.config.getoption
    options = RunOptions(
        simulator=option("--simulator"),
        limit_factor=option("--limit-factor"),
        fvp_missing=option("--fvp-missing") or missing_policy(),
    )
    with _failing():
        try:
            record = run_case(case, pick(target, options.simulator), program, firmware, options)
        except FvpMissing as error:
            record_property("verdict", error.verdict.value)
            pytest.skip(explained(error))
    request.node.stash[RECORD] = record
    for name, value in properties(record):
        record_property(name, value)
    return record
