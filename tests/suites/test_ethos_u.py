"""A few of ExecuTorch's Ethos-U tests, unmodified, on the stand-in's NPU.

These build a runner and export with torch. To collect the whole suite takes half a minute, so that
they collect a single file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness.suites.results import Selection, SuiteReport
from harness.suites.run import SuiteOptions, run_suite
from harness.suites.suites import SUITES
from harness.system.paths import state_dir
from harness.system.progress import silent
from tests.thorough import cases


def results(report: SuiteReport) -> list[dict[str, object]]:
    """All but where the program came from and how long the test took."""
    tests = sorted(report.tests, key=lambda test: test.id)
    return [{**asdict(test), "seconds": 0, "from_store": None} for test in tests]


@pytest.fixture
def store() -> Iterator[Path]:
    """On the file system of the suite's own folder, from where recordings are moved into it."""
    with TemporaryDirectory(dir=state_dir()) as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", cases("ethos-u85", thorough=["ethos-u65"]))
def test_add(name: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suite, stand-in, doorbell, NPU model and runner together, for both boards; and the same
    results again from stored programs, where torch is not started."""
    monkeypatch.setattr("harness.suites.store.cache_dir", lambda kind: store / kind)
    suite = replace(SUITES[name], tests="ops/test_add.py")
    monkeypatch.setitem(SUITES, name, suite)  # type: ignore[misc]
    options = SuiteOptions(Selection("test_add_tensor_u", sample=1), workers=1)
    report, again = (run_suite(name, options, silent) for _ in range(2))
    assert report.summary["passed"] == report.on_target == len(report.tests) == 1
    assert (report.simulated_again, again.simulated_again) == (0, 1)
    assert not again.log.exists()
    assert results(again) == results(report)
