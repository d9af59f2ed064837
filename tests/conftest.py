"""Fixtures of the whole suite, and what its last lines say."""

from __future__ import annotations

import os

import pytest

from harness.build.choice import ROOT_VARIABLE
from harness.system.paths import state_dir

_OF_CHECKOUTS = "tests/build/executorch/"


@pytest.fixture(scope="session")
def shared_hil_home() -> str:
    """The state directory of the session itself, so that inner runs export and build nothing."""
    return str(state_dir())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which ExecuTorch the builds of a checkout were tested with."""
    reports = [r for status in terminalreporter.stats.values() for r in status]
    ids = [r.nodeid for r in reports if isinstance(r, pytest.TestReport) and r.when == "call"]
    builds = [name for name in ids if name.startswith(_OF_CHECKOUTS)]
    if not builds:
        return
    root = os.environ.get(ROOT_VARIABLE)
    real = sum("[real" in name for name in builds)
    terminalreporter.section("checkouts of ExecuTorch")
    terminalreporter.line(f"small, of {_OF_CHECKOUTS}tree: {len(builds) - real} tests")
    if root and real:
        terminalreporter.line(f"real, {root}: {real} tests")
    else:
        terminalreporter.line(f"real: none, for ${ROOT_VARIABLE} " + (
            "was not asked for by these tests" if root else "is not set"))  # fmt: skip
