"""The pytest plugin in the processes of a suite and of a CI job: reports phases of tests.

In a suite it also selects tests and records exports. The process that starts the workers
(pytest-xdist's controller) writes one JSON line per phase of a test to the descriptor ``events`` of
``session``'s request. A worker gives every test a folder for the stand-in's files, and attaches the
consoles to the test's report. The folder of a failed test stays as evidence; that of any other
becomes a recording (``store``).

In a CI job's own pytest ``$HIL_CI_TESTS`` names the file that gets the JSON lines, and
``$HIL_STANDIN_RECORD`` the folder of the job's simulations, in which a test has one of its own.
"""

from __future__ import annotations

import base64
import gc
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import wraps
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.suites.results import Selection
from harness.suites.standin.record import RECORD
from harness.suites.store import ExportStore
from harness.system.files import read_json

JOB_TESTS = "HIL_CI_TESTS"
REQUEST = "request.json"  # in the workspace: the request of ``session``
KEPT = "kept"  # in the workspace: the simulations of failed tests
_CONSOLES = "hil-consoles"
_COMPARED = "hil-compared"
_TESTER = "executorch.backends.test.harness.tester"
_WRAPPED = "RuntimeError: Test failure."  # the shared suite's, raised from the error itself
_CONSOLE_BYTES = 16384  # at most, of a reported console: half from each end


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("hil suite").addoption("--hil-workspace", help="folder of the run")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    recorder: _PhaseRecorder
    if config.getoption("--hil-workspace") is None:
        recorder = _OfJob(writes=not is_worker)
    else:
        recorder = _Worker(config) if is_worker else _Controller(config)
    config.pluginmanager.register(recorder)


def _request(config: pytest.Config) -> dict[str, Any]:
    return dict(read_json(Path(config.getoption("--hil-workspace"), REQUEST)))


class _PhaseRecorder:
    """Gives ``record`` the fields of each phase of a test, and of a file that is not collected."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self.record(_phase_fields(report, "collect", 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.record(_phase_fields(report, str(report.when), report.duration))

    def record(self, fields: dict[str, Any]) -> None:
        raise NotImplementedError


class _EvidenceRecorder(_PhaseRecorder):
    """Adds to a test's report what it simulated and compared; another process may read it there.

    ``simulated``: the folder of the current test; ``compared``: its outputs."""

    def __init__(self, folder: Path) -> None:
        self.simulated = folder
        self.compared: list[ComparedOutput] = []

    def pytest_collection_finish(self) -> None:
        observe_comparisons(sys.modules.get(_TESTER), self.compared)

    def start(self, item: pytest.Item, folder: Path, number: int) -> None:
        """Gives the stand-in a folder for a test, in ``folder``."""
        name = re.sub(r"[^\w.=-]+", "_", item.nodeid)[-150:]
        self.simulated = folder / f"{name}.{number}"
        os.environ[RECORD] = str(self.simulated)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        if call.when == "call":
            properties, logs = outcome.get_result().user_properties, self.simulated.glob("*.log")
            properties.append(
                (_CONSOLES, [encoded_console(path.read_bytes()) for path in sorted(logs)])
            )
            if self.compared:
                largest = max(output.difference for output in self.compared)
                constant = all(output.constant for output in self.compared)
                properties.append((_COMPARED, (largest, constant)))


class _Worker(_EvidenceRecorder):
    def __init__(self, config: pytest.Config) -> None:
        self._workspace = Path(config.getoption("--hil-workspace"))
        super().__init__(self._workspace / KEPT)
        self._config = config
        self._store = ExportStore(Path(_request(config)["store"]))
        self._numbers = itertools.count()
        self._collected: list[str] = []  # the suite's tests that match
        self._phases: list[dict[str, Any]] = []  # of the current test
        self._uncollected: list[dict[str, Any]] = []

    def pytest_collection(self) -> None:
        """Before a test of the suite imports torchvision."""
        if find_spec("torchvision") is not None:
            from harness.export.child.source import torchvision_schemas  # imports torch

            torchvision_schemas()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """After ``-k``: the tests of the suite, of the shard and of the sample that are not done
        yet. Every worker must compute the same list."""
        request = _request(self._config)
        by_id = {
            item.nodeid: item
            for item in items
            if request["only"] in item.nodeid.rpartition("::")[2].partition("[")[0]
        }
        self._collected = list(by_id)
        selected = Selection(**request["selection"]).choose(self._collected)
        chosen = [test for test in selected if test not in set(request["done"])]
        if deselected := [item for item in items if item.nodeid not in set(chosen)]:
            self._config.hook.pytest_deselected(items=deselected)
        items[:] = [by_id[test] for test in chosen]

    def record(self, fields: dict[str, Any]) -> None:
        (self._uncollected if fields["when"] == "collect" else self._phases).append(fields)

    def pytest_collection_finish(self) -> None:
        keyword = self._config.getoption("keyword")
        self._store.save_collection(keyword, self._collected, self._uncollected)
        super().pytest_collection_finish()
        # torch's modules live to the end, and a full garbage collection walks through them: without
        # freezing, it takes a third of a suite's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._phases.clear()
        self.compared.clear()
        self.start(item, self._workspace / KEPT, next(self._numbers))
        yield
        del os.environ[RECORD]
        if all(phase["outcome"] != "failed" for phase in self._phases):
            self._store.save_recording(self.simulated, self._workspace, item.nodeid, self._phases)
            shutil.rmtree(self.simulated, ignore_errors=True)


class _OfJob(_EvidenceRecorder):
    """Selects nothing and changes no outcome.

    ``writes``: in pytest-xdist's controller, which gets all reports, or without it."""

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
            with open(os.environ[JOB_TESTS], "a", encoding="utf-8") as file:
                file.write(dumps(fields) + "\n")


class ComparedOutput(NamedTuple):
    """An output: its largest difference to the reference, and whether both are one value throughout
    (of several elements)."""

    difference: float
    constant: bool


def observe_comparisons(tester_module: Any, compared: list[ComparedOutput]) -> None:
    """From now on, appends to ``compared`` every output that ExecuTorch's Tester compares with its
    reference.

    The suites compare within a tolerance and record no figure, and there is no hook. This is the
    only foreign function that the harness wraps; it is still called with the same arguments. If
    ExecuTorch has no such function, nothing is observed and the report says so.
    """
    tester = getattr(tester_module, "Tester", None)
    compare = getattr(tester, "_assert_outputs_equal", None)
    if tester is None or compare is None:
        return

    @wraps(compare)
    def observed(outputs: Any, references: Any, *arguments: Any, **named: Any) -> Any:
        for output, reference in zip(outputs, references, strict=False):
            compared.append(_compared(output, reference))
        return compare(outputs, references, *arguments, **named)

    tester._assert_outputs_equal = staticmethod(observed)


def _compared(output: Any, reference: Any) -> ComparedOutput:
    """Compares tensors. NaN equals NaN and is infinitely far from numbers, as is another shape."""
    if output.shape != reference.shape:
        return ComparedOutput(sys.float_info.max, constant=False)
    a, b = output.detach().double().flatten(), reference.detach().double().flatten()
    differing = ~((a == b) | (a.isnan() & b.isnan()))
    if bool(differing.any()):
        far = float((a - b)[differing].abs().nan_to_num(nan=sys.float_info.max).max())
        return ComparedOutput(far, constant=False)
    alike = bool((a == a[0]).all() or a.isnan().all()) if len(a) > 1 else False
    return ComparedOutput(0.0, constant=alike)


class _Controller(_PhaseRecorder):
    def __init__(self, config: pytest.Config) -> None:
        self._events = os.fdopen(_request(config)["events"], "w", encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self.record({"collected": ids})

    def pytest_unconfigure(self) -> None:
        self._events.close()

    def record(self, fields: dict[str, Any]) -> None:
        self._events.write(dumps(fields) + "\n")
        self._events.flush()


def encoded_console(content: bytes) -> str:
    """The beginning and the end of a console, in base64."""
    if len(content) > _CONSOLE_BYTES:
        half = _CONSOLE_BYTES // 2
        content = content[:half] + b"\n[...]\n" + content[-half:]
    return base64.b64encode(content).decode("ascii")


def _phase_fields(
    report: pytest.TestReport | pytest.CollectReport, when: str, seconds: float
) -> dict[str, Any]:
    """The fields of a ``results.Phase`` as JSON types."""
    properties = dict(getattr(report, "user_properties", ())) if when == "call" else {}
    difference, constant = properties.get(_COMPARED, (None, False))
    return {
        "test": report.nodeid,
        "when": when,
        "outcome": report.outcome,
        "message": _message(report),
        "xfail": getattr(report, "wasxfail", None),
        "seconds": seconds,
        "consoles": properties.get(_CONSOLES, []),
        "difference": difference,
        "constant": constant,
    }


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The exception without its traceback."""
    longrepr: Any = report.longrepr
    if isinstance(longrepr, tuple):
        return str(longrepr[2])
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None and crash.message == _WRAPPED:
        (_, crash, _) = longrepr.chain[-2:][0]
    return str(crash.message if crash is not None else longrepr or "")
