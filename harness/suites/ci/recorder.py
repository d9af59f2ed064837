"""The pytest plugin in a CI job's own pytest: what each test simulated and compared.

``$HIL_CI_TESTS`` names the file that gets one JSON line for each phase of a test, the fields of
``results.Phase``; ``$HIL_STANDIN_RECORD`` the folder of the job's simulations, in which a test has
one of its own. Selects nothing and changes no outcome.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.suites.recorder import (
    TESTER,
    ComparedOutput,
    add_evidence,
    observe_comparisons,
    phase_fields,
)
from harness.suites.standin.record import RECORD

TESTS = "HIL_CI_TESTS"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Recorder(writes=not hasattr(config, "workerinput")))


class _Recorder:
    """``writes``: in pytest-xdist's controller, which gets all reports, or without it."""

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes
        self._base = self._simulated = Path(os.environ[RECORD])
        self._compared: list[ComparedOutput] = []

    def pytest_collection_finish(self) -> None:
        observe_comparisons(sys.modules.get(TESTER), self._compared)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        name = re.sub(r"[^\w.=-]+", "_", item.nodeid)[-150:]
        self._simulated = self._base / "tests" / f"{name}.{os.getpid()}"
        os.environ[RECORD] = str(self._simulated)
        yield
        os.environ[RECORD] = str(self._base)

    def pytest_runtest_setup(self) -> None:
        self._compared.clear()  # a test that is run again counts as its last run

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        if call.when == "call":
            add_evidence(outcome.get_result(), self._simulated, self._compared)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._write(phase_fields(report, "collect", 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(phase_fields(report, str(report.when), report.duration))

    def _write(self, fields: dict[str, Any]) -> None:
        if self._writes:
            with open(os.environ[TESTS], "a", encoding="utf-8") as file:
                file.write(json.dumps(fields) + "\n")
