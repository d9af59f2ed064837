"""A pytest plugin for the process that runs the suite: picks the tests, tells what became of them.

In a worker it gives every test its own directory for what the stand-in ran, attaches the consoles
to the reports and keeps the directory when the test does not pass; in the process that started the
workers it writes one JSON line per phase to the descriptor in ``HIL_CONFORMANCE_EVENTS``.

What torch does slowly and can be had sooner with the same result is in ``harness.shortcuts``.
"""

from __future__ import annotations

import base64
import gc
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from harness.conformance import prepared
from harness.conformance.notes import note_collection, note_loaded, note_test
from harness.conformance.selecting import choose, longest_first
from harness.shortcuts import shortcuts
from harness.shortcuts.patch import put
from harness.standin.install import packages_of_npu
from harness.standin.record import RECORD
from harness.standin.resident import PLACE, resident
from harness.system.sampling import Sampler, save

EVENTS = "HIL_CONFORMANCE_EVENTS"
KEPT = "HIL_CONFORMANCE_KEPT"
PROFILE = "HIL_CONFORMANCE_PROFILE"  # a file: where the worker's time went
NOTES = "notes"  # beside it
_COLLECTED = pytest.StashKey[list[str]]()  # the suite's tests that match
_PROPERTY = "hil-consoles"
_APART = "hil-apart"
_COLLECT_EVERY = 25  # tests; each leaves some 20 classes, which torch goes over again and again
_CONSOLE_BYTES = 16384  # kept of each run, half from its beginning and half from its end


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--hil-shard", default="1/1")
    group.addoption("--hil-sample", type=int, default=0)
    group.addoption("--hil-seed", type=int, default=0)
    group.addoption("--hil-only", default="")
    group.addoption("--hil-done", default=os.devnull)
    group.addoption("--hil-by", default="", help="what simulates, as tests are remembered with it")
    group.addoption("--hil-each-apart", action="store_true", help="no test uses another's work")
    group.addoption("--hil-seconds", default="", help="JSON: seconds by test")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_Worker(Path(os.environ[KEPT])))
    else:
        config.pluginmanager.register(_Controller(int(os.environ[EVENTS])))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After ``-k``: those of the suite, the shard, the sample, without those that ran already.
    Every worker must come to the same list."""
    only = config.getoption("--hil-only")
    ours = [item for item in items if only in item.nodeid.rpartition("::")[2].partition("[")[0]]
    ids = [item.nodeid for item in ours]
    config.stash[_COLLECTED] = ids
    index, count = (int(part) for part in config.getoption("--hil-shard").split("/"))
    size, seed = config.getoption("--hil-sample"), config.getoption("--hil-seed")
    done = set(Path(config.getoption("--hil-done")).read_text("utf-8").splitlines())
    chosen = [one for one in choose(ids, (index, count), size, seed) if one not in done]
    if known := config.getoption("--hil-seconds"):
        seconds = json.loads(Path(known).read_text("utf-8"))
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        chosen = longest_first(chosen, seconds, workers)
    if len(chosen) != len(items):
        left = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in left])
    by_id = {item.nodeid: item for item in ours}
    items[:] = [by_id[one] for one in chosen]


def _notes() -> Path:
    return Path(os.environ[KEPT]).with_name(NOTES)


class _Worker:
    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self._numbers = itertools.count()
        self._current: Path | None = None
        self._passed = True
        self._apart: list[float] = []  # of each output that the test compared
        self._events: list[dict[str, Any]] = []
        self._uncollected: list[dict[str, Any]] = []
        self._by = ""
        self._sampler = Sampler() if os.environ.get(PROFILE) else None
        if self._sampler is not None:
            self._sampler.start()
        self._open = ExitStack()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._uncollected.append(_event(report, "collect", None, 0.0))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What the imports left is never freed: looking through it costs a third of the time."""
        config = session.config
        keyword, ids = config.getoption("keyword"), config.stash[_COLLECTED]
        note_collection(_notes(), keyword, ids, self._uncollected)
        self._by = config.getoption("--hil-by")
        if "torch" in sys.modules:
            self._open.enter_context(shortcuts())
            if not config.getoption("--hil-each-apart"):
                for patch in prepared.patches(sys.modules.get(prepared.TESTER)):
                    self._open.enter_context(put(patch))
            watch_comparisons(sys.modules.get(_TESTER), self._apart)
            place = self._open.enter_context(resident(packages_of_npu(), os.environ))
            os.environ[PLACE] = place
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        number = next(self._numbers)
        self._current = self._kept / f"{_file_name(item.nodeid)}.{number}"
        self._passed = True
        self._apart.clear()
        self._events.clear()
        os.environ[RECORD] = str(self._current)
        yield
        del os.environ[RECORD]
        stage = self._kept.parent
        note_test(_notes(), stage, item.nodeid, self._events, self._current, self._by)
        if self._passed:
            shutil.rmtree(self._current, ignore_errors=True)
        if number % _COLLECT_EVERY == _COLLECT_EVERY - 1:
            gc.collect()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        outcome: Any = yield
        report = outcome.get_result()
        self._passed = self._passed and report.outcome != "failed"
        if call.when == "call" and self._current is not None:
            found = (path.read_bytes() for path in sorted(self._current.glob("*.log")))
            consoles = [base64.b64encode(excerpt(one)).decode("ascii") for one in found]
            report.user_properties.append((_PROPERTY, consoles))
            report.user_properties.append((_APART, max(self._apart, default=None)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._events.append(_event_of_test(report))

    def pytest_sessionfinish(self) -> None:
        note_loaded(_notes())
        self._open.close()
        if self._sampler is not None:
            save(self._sampler.stop(), Path(os.environ[PROFILE]))


# Where ExecuTorch 1.5.1 compares what a stage gave with the reference, within a tolerance.
_TESTER = "executorch.backends.test.harness.tester"


def watch_comparisons(module: Any, apart: list[float]) -> None:
    """From now on ``apart`` gets the largest difference of every output that the suite compares.
    A module without the function is left as it is."""
    tester = getattr(module, "Tester", None)
    compare = getattr(tester, "_assert_outputs_equal", None)
    if tester is None or compare is None:
        return

    @wraps(compare)
    def both(model: Any, reference: Any, *arguments: Any, **named: Any) -> Any:
        pairs = zip(model, reference, strict=False)
        apart.extend(_apart(a, b) for a, b in pairs if a.shape == b.shape)
        return compare(model, reference, *arguments, **named)

    tester._assert_outputs_equal = staticmethod(both)


def _apart(a: Any, b: Any) -> float:
    """Of two tensors of one shape; NaN is no different from NaN, and far from everything else."""
    x, y = a.detach().double().flatten(), b.detach().double().flatten()
    differing = ~((x == y) | (x.isnan() & y.isnan()))
    if not bool(differing.any()):
        return 0.0
    return float((x - y)[differing].abs().nan_to_num(nan=sys.float_info.max).max())


def _file_name(test: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", test)[-150:]


def excerpt(content: bytes) -> bytes:
    """What is kept of a console."""
    if len(content) <= _CONSOLE_BYTES:
        return content
    half = _CONSOLE_BYTES // 2
    return content[:half] + b"\n[...]\n" + content[-half:]


class _Controller:
    def __init__(self, descriptor: int) -> None:
        self._events = os.fdopen(descriptor, "w", encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._tell({"selected": len(ids)})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._tell(_event(report, "collect", None, 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(_event_of_test(report))

    def pytest_unconfigure(self) -> None:
        self._events.close()

    def _tell(self, event: dict[str, Any]) -> None:
        self._events.write(json.dumps(event) + "\n")
        self._events.flush()


def _event_of_test(report: pytest.TestReport) -> dict[str, Any]:
    return _event(report, str(report.when), getattr(report, "wasxfail", None), report.duration)


def _event(
    report: pytest.TestReport | pytest.CollectReport, when: str, xfail: str | None, seconds: float
) -> dict[str, Any]:
    """What is told of one phase, as ``model.Phase`` has it."""
    properties = dict(getattr(report, "user_properties", ()))
    return {
        "test": report.nodeid,
        "when": when,
        "outcome": report.outcome,
        "message": _message(report),
        "xfail": xfail,
        "seconds": seconds,
        "consoles": properties.get(_PROPERTY, []) if when == "call" else [],
        "apart": properties.get(_APART) if when == "call" else None,
    }


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    """What was raised, without the way there."""
    said: Any = report.longrepr
    if said is None:
        return ""
    if isinstance(said, tuple):
        return str(said[2])
    crash = getattr(said, "reprcrash", None)
    return str(crash.message if crash is not None else said)
