"""The pytest plugin in a CI job's own pytest: what each test simulated and compared.

``$HIL_CI_TESTS`` names the file that gets one JSON line for each phase of a test, the fields of
``results.Phase``; ``$HIL_STANDIN_RECORD`` the folder of the job's simulations, in which a test has
one of its own. Selects nothing and changes no outcome.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.suites.recorder import EvidenceRecorder
from harness.suites.standin.record import RECORD

TESTS = "HIL_CI_TESTS"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Recorder(writes=not hasattr(config, "workerinput")))


class _Recorder(EvidenceRecorder):
    """``writes``: in pytest-xdist's controller, which gets all reports, or without it."""

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes
        self._base = Path(os.environ[RECORD])
        super().__init__(self._base)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.start(item, self._base / "tests", os.getpid())
        yield
        os.environ[RECORD] = str(self._base)

    def pytest_runtest_setup(self) -> None:
        self.compared.clear()  # a test that is run again counts as its last run

    def record(self, fields: dict[str, Any]) -> None:
        if self._writes:
            with open(os.environ[TESTS], "a", encoding="utf-8") as file:
                file.write(json.dumps(fields) + "\n")
