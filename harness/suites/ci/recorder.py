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
    Compared,
    add_evidence,
    observe_comparisons,
    phase_fields,
)
from harness.suites.standin.record import RECORD

TESTS = "HIL_CI_TESTS"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Observer())
    if not hasattr(config, "workerinput"):  # with pytest-xdist the controller has all reports
        config.pluginmanager.register(_Writer(Path(os.environ[TESTS])))


class _Observer:
    def __init__(self) -> None:
        self._base = Path(os.environ[RECORD])
        self._simulated = self._base
        self._compared: list[Compared] = []

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


class _Writer:
    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._write(phase_fields(report, "collect", 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(phase_fields(report, str(report.when), report.duration))

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _write(self, fields: dict[str, Any]) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()
