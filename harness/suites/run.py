"""Runs a suite with a runner and a selection, and returns a SuiteReport.

A test's result follows from what it exported and from how the simulations of that ended. When the
store has a test's exports, only the simulations are repeated, with the current runner and NPU
model. When each ends with the recorded status, console and files, pytest's earlier report is the
result. When anything differs, pytest runs the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from harness.core.safe_text import counted
from harness.export.checkout import CheckoutExporter
from harness.export.exporter import exporter_label
from harness.firmware.checkout import Checkout
from harness.firmware.names import BUNDLED
from harness.firmware.source import FirmwareSource, full_label, source_named
from harness.run.version_skew import redeclared
from harness.suites.recorder import encoded_console
from harness.suites.results import Phase, Selection, SuiteReport, require_found, results_of
from harness.suites.session import SuiteWorkspace, prepare, require_standins, run_session
from harness.suites.standin.record import Simulation
from harness.suites.store import ExportStore, Recording, export_key
from harness.suites.suites import (
    SUITES,
    apply_known_failures,
    build_runner,
    check_core,
    known_failures_for,
    read_known_failures,
    unknown_tests,
)
from harness.system import toolchain
from harness.system.call import TiedProcess
from harness.system.cancellation import cancelling
from harness.system.files import disk_errors, sha256_of
from harness.system.paths import executorch_package
from harness.system.progress import Progress

WORKERS = 2


@dataclass(frozen=True)
class SuiteOptions:
    """``elf``: the runner under test; None for the firmware of ``source`` (and ``checkout``).
    ``exporter``: the checkout whose tests run and whose Python exports; None for the installed
    wheel. ``use_store``: programs of earlier runs, also interrupted ones, are only simulated
    again, as long as the exporter has not changed."""

    selection: Selection = field(default_factory=Selection)
    elf: Path | None = None
    source: FirmwareSource = field(default_factory=lambda: source_named(BUNDLED))
    checkout: Checkout | None = None
    exporter: CheckoutExporter | None = None
    workers: int = WORKERS
    use_store: bool = True


def run_suite(name: str, options: SuiteOptions, progress: Progress) -> SuiteReport:
    """Runs ExecuTorch's suite ``name``. Raises StandinMissing, and what prevents the run."""
    suite, exporter = SUITES[name], options.exporter
    known = read_known_failures(suite.known_failures_file)
    qemu = toolchain.require("qemu-system-arm")
    if options.elf is not None:
        check_core(suite, options.elf)
        elf, firmware = options.elf, "a given ELF"
    else:
        built = build_runner(suite, options.source, options.checkout, progress)
        elf, firmware = built.elf, full_label(built.source.name, built.checkout)
    workspace = prepare(suite, elf, exporter)
    require_standins(workspace)
    started = time.monotonic()
    try:
        phases = _run_tests(workspace, options, progress)
    finally:
        shutil.rmtree(workspace.scratch, ignore_errors=True)
    tests = results_of(phases)
    require_found(tests)
    of_wheel = exporter is None  # the known failures are those of the wheel's tests
    tests = apply_known_failures(tests, known_failures_for(known, elf), strict=of_wheel)
    return SuiteReport(
        suite=suite.name,
        simulator=f"FVP stand-in on QEMU {qemu.version} (mps3-an547)",
        elf=str(elf),
        tests=tests,
        seconds=time.monotonic() - started,
        log=workspace.log,
        complaints=unknown_tests(tests, known) if options.selection.everything and of_wheel else (),
        note=" ".join(filter(None, (suite.note, skew_note(options)))),
        firmware=firmware,
        exporter=exporter_label(None if exporter is None else exporter.facts),
    )


def skew_note(options: SuiteOptions) -> str:
    """A note on operators that the wheel and the checkout declare differently: the programs of the
    wheel's tests are not checked before they run. Empty when they fit."""
    checkout = options.checkout if options.exporter is None else None
    others = {} if checkout is None else redeclared(executorch_package(), checkout.root)
    if not others:
        return ""
    (operator, how), *more = others.items()
    rest = f" (and {counted(len(more), 'more operator')})" if more else ""
    return (
        f"the wheel's tests export for another version than the checkout's: there {operator} {how}"
        f"{rest}; a test with such an operator fails: --exporter checkout runs the checkout's tests"
    )


def _run_tests(workspace: SuiteWorkspace, options: SuiteOptions, progress: Progress) -> list[Phase]:
    # Tests that draw random inputs export something else every time.
    use_store = options.use_store and os.environ.get("TEST_SEED") != "RANDOM"
    key = export_key(workspace.suite, options.exporter)
    store = ExportStore.of(workspace.suite.name, key)
    with disk_errors("running the suite"):
        store.prepare()
    collected = store.collected(options.selection.keyword) if use_store else None
    phases: list[dict[str, Any]] = []
    done: set[str] = set()
    if collected is not None:
        selected = options.selection.choose(collected[0])
        recordings = [r for r in map(store.recording, selected) if r is not None]
        phases += replay(recordings, workspace, options.workers, progress)
        done = {phase["test"] for phase in phases}
        if selected and set(selected) <= done:
            return [Phase.from_json(phase) for phase in [*phases, *collected[1]]]
    phases += run_session(workspace, store, options.selection, options.workers, progress, done)
    # After a change in the middle of the run, it is unknown which tests were exported before it.
    if export_key(workspace.suite, options.exporter) != key:
        store.discard()
    return [Phase.from_json(phase) for phase in phases]


# Lines in which a runner logs its own sizes, times and source lines: another build of the same
# runner differs in them, and no test reads them.
_LOG_LINE = b"I ["
_SIMULATION_SECONDS = 1800.0  # the recorded command line has a limit of its own


def replay(
    recordings: Sequence[Recording], workspace: SuiteWorkspace, workers: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    """The phases of every test whose simulations end as recorded."""
    longest_first = sorted(recordings, key=lambda recording: -recording.seconds)
    with ThreadPoolExecutor(workers) as pool, cancelling(pool):
        results = pool.map(lambda recording: _replay(recording, workspace), longest_first)
        for number, phases in enumerate(results, start=1):
            progress(f"suite, simulating stored programs {number}/{len(recordings)}")
            yield from phases


def _replay(recording: Recording, workspace: SuiteWorkspace) -> list[dict[str, Any]]:
    started = monotonic()
    consoles = []
    for simulation in recording.simulations:
        console = _simulate(simulation, recording.workspace, workspace)
        if console is None:
            return []
        consoles.append(encoded_console(console))
    now = {"from_store": True, "seconds": 0.0}
    in_call = {**now, "seconds": monotonic() - started, "consoles": consoles}
    return [
        {**phase, **(in_call if phase["when"] == "call" else now)} for phase in recording.phases
    ]


def _simulate(simulation: Simulation, recorded_in: str, workspace: SuiteWorkspace) -> bytes | None:
    """The console; None when the simulation does not end as recorded."""
    cwd = Path(tempfile.mkdtemp(dir=workspace.scratch))
    try:
        for name in simulation.inputs:
            shutil.copyfile(simulation.files / name, cwd / name)
        arguments = [
            text.replace(simulation.cwd, str(cwd)).replace(recorded_in, str(workspace.directory))
            for text in simulation.argv
        ]
        model = workspace.standin_folder / simulation.model
        with TiedProcess(
            [model, *arguments],
            cwd=cwd,
            env=workspace.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            console, _ = child.communicate(timeout=_SIMULATION_SECONDS)
        as_recorded = (
            child.returncode == simulation.status
            and _compared(console) == _compared(simulation.log.read_bytes())
            and _digests(cwd) == _digests(simulation.files)
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    else:
        return console if as_recorded else None
    finally:
        shutil.rmtree(cwd, ignore_errors=True)


def _compared(console: bytes) -> list[bytes]:
    return [line for line in console.splitlines() if not line.startswith(_LOG_LINE)]


def _digests(directory: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in directory.iterdir() if path.is_file()}
