"""Fixtures of the whole suite, and what its last lines say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from harness.export import batch
from harness.export.checkout import CheckoutExporter
from harness.export.process import ExportProcess, Sandbox
from harness.firmware.step import launchers
from harness.run import subjects
from harness.system.paths import state_dir
from harness.system.settings import ROOT_VARIABLE
from tests.link.workspace import make_workspace
from tests.thorough import is_named, is_thorough

COLLECTED_WITH = pytest.StashKey[frozenset[str]]()  # modules there are before the first test
_OF_CHECKOUTS = "tests/firmware/executorch/"
_OF_THE_MATRIX = "tests/regression/test_regression.py"
_ZEPHYR = "zephyr"
# They came with ExecuTorch and with our tools: 1.5 s of 1.8 s that a session of pytest takes.
_OF_A_DESKTOP = ("COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "CFLAGS", "CXXFLAGS")
WITHOUT_OTHERS_PLUGINS = "-p no:hypothesispytest -p no:hydra_pytest -p no:anyio -p no:labgrid"


@pytest.fixture(scope="session")
def shared_hil_home() -> str:
    """The state directory of the session itself, so that inner runs export and build nothing."""
    return str(state_dir())


@pytest.fixture(scope="session", autouse=True)
def _compilations_are_shared(
    shared_hil_home: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """What one test compiled, in whatever tree and by whatever CMake, is there for the others,
    whatever their home. An inner session of pytest loads no plugins but ours and xdist's."""
    with pytest.MonkeyPatch.context() as patch:
        for name, program in launchers("C", "CXX").items():
            patch.setenv(name, program)
        patch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS_PLUGINS)
        patch.setenv("CCACHE_DIR", str(Path(shared_hil_home) / "cache" / "ccache"))
        patch.setenv("CCACHE_BASEDIR", str(tmp_path_factory.getbasetemp()))
        patch.setenv("CCACHE_NOHASHDIR", "1")
        # each processor has a worker: threads of torch would wait for each other
        patch.setenv("OMP_NUM_THREADS", "1")
        # the language of a compiler's messages counts: that of the builds of firmware
        for name in ("LANG", "LANGUAGE", *_OF_A_DESKTOP):
            patch.delenv(name, raising=False)
        patch.setenv("LC_ALL", "C.UTF-8")
        yield


@pytest.fixture(scope="session")
def small_zephyr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Zephyr in a west workspace made of tests/link/zephyr_standin, for who changes nothing in it:
    what is compiled in one workspace is compiled once. ``copy_workspace`` makes another."""
    return make_workspace(tmp_path_factory.mktemp("west"))


@pytest.fixture(scope="session", autouse=True)
def _torch_is_imported_once(
    hil_exporter: CheckoutExporter | None, hil_export_process: ExportProcess
) -> Iterator[None]:
    """The session's export process serves every test that exports: each start of another imports
    torch and ExecuTorch, which takes seconds."""

    def export_process(
        exporter: CheckoutExporter | None = None, sandbox: Sandbox | None = None
    ) -> AbstractContextManager[ExportProcess]:
        if exporter is hil_exporter and sandbox is None:
            return nullcontext(hil_export_process)
        return ExportProcess(exporter, sandbox)

    with pytest.MonkeyPatch.context() as patch:
        for module in (batch, subjects):
            patch.setattr(module, "ExportProcess", export_process)
        patch.setattr(batch, "side_by_side", lambda *_: 1)
        yield


@pytest.fixture
def guest_home(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with what the Linux guest is made of as far as it is there already."""
    shared = Path(shared_hil_home) / "cache" / "guest"
    shared.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".hil" / "cache").mkdir(parents=True)
    (tmp_path / ".hil" / "cache" / "guest").symlink_to(shared)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    return tmp_path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is thorough is left out, where nothing asks for it. Each worker begins with a part of
    the matrix: it exports the programs of all its cases in one process, and the other tests, which
    would start one for each, find them in the cache. xdist's ``worksteal`` gives the first of N
    workers the first Nth of the tests, and so on."""
    if not (is_thorough() or is_named(config)):
        thorough = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    matrix = [item for item in items if item.nodeid.startswith(_OF_THE_MATRIX)]
    others = [item for item in items if not item.nodeid.startswith(_OF_THE_MATRIX)]
    parts = [
        _part(tests, number, workers) for number in range(workers) for tests in (matrix, others)
    ]
    items[:] = [item for part in parts for item in part]


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[COLLECTED_WITH] = frozenset(sys.modules)


def _part(tests: list[pytest.Item], number: int, count: int) -> list[pytest.Item]:
    return tests[len(tests) * number // count : len(tests) * (number + 1) // count]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which ExecuTorch and which Zephyr the builds were tested with."""
    reports = [r for status in terminalreporter.stats.values() for r in status]
    ids = [r.nodeid for r in reports if isinstance(r, pytest.TestReport) and r.when == "call"]
    _which_zephyr(terminalreporter, [name for name in ids if _ZEPHYR in name])
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
        terminalreporter.line(
            f"real: none, for ${ROOT_VARIABLE} "
            + ("was not asked for by these tests" if root else "is not set")
        )


def _which_zephyr(reporter: pytest.TerminalReporter, tests: list[str]) -> None:
    """Which workspaces the tests of Zephyr were built in."""
    if not tests:
        return
    base = os.environ.get("ZEPHYR_BASE")
    real = sum("real" in name for name in tests)
    reporter.section("workspaces of Zephyr")
    reporter.line(f"small, of tests/link/zephyr_standin, or none: {len(tests) - real} tests")
    if base and real:
        reporter.line(f"real, {base}: {real} tests")
    else:
        reporter.line(
            "real: none, for $ZEPHYR_BASE "
            + ("was not asked for by these tests" if base else "is not set")
        )
