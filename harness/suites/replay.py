"""Simulates the recorded runs of a test again, and keeps its result only if they end as recorded.

What a test says follows from what it exported and from what the simulations of that gave. The
export is the store's; the simulations are made now, with the runner and the NPU model of now. When
each of them ends with the recorded status, console and files, the result is what pytest reported
then. When anything differs, nothing is known, and pytest has to run the test.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

from harness.suites.recorder import encoded_console
from harness.suites.standin.record import Simulation
from harness.suites.store import Recording
from harness.suites.workspace import Workspace
from harness.system import toolchain
from harness.system.files import sha256_of
from harness.system.progress import Progress

# Lines that a runner logs of itself (sizes, times, places in its source): another build of the
# same runner differs in them, and no test looks at them.
_LOG_LINE = b"I ["
_LIMIT_SECONDS = 1800.0  # of one simulation; the recorded command line has a limit of its own


def replay(
    recordings: Sequence[Recording], workspace: Workspace, workers: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    """The phases of every test whose simulations end as recorded."""
    longest_first = sorted(recordings, key=lambda recording: -recording.seconds)
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda recording: _replay(recording, workspace), longest_first)
        for number, phases in enumerate(results, start=1):
            progress(f"suite, simulating stored programs {number}/{len(recordings)}")
            yield from phases


def _replay(recording: Recording, workspace: Workspace) -> list[dict[str, Any]]:
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


def _simulate(simulation: Simulation, recorded_in: str, workspace: Workspace) -> bytes | None:
    """The console; None when the simulation does not end as recorded."""
    cwd = Path(tempfile.mkdtemp(dir=workspace.scratch))
    try:
        for name in simulation.inputs:
            shutil.copyfile(simulation.files / name, cwd / name)
        words = [
            word.replace(simulation.cwd, str(cwd)).replace(recorded_in, str(workspace.directory))
            for word in simulation.argv
        ]
        model = workspace.standins / simulation.model
        done = subprocess.run(
            [toolchain.locate("setpriv"), "--pdeathsig", "KILL", "--", model, *words],
            cwd=cwd,
            env=workspace.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
        as_recorded = (
            done.returncode == simulation.status
            and _compared(done.stdout) == _compared(simulation.log.read_bytes())
            and _digests(cwd) == _digests(simulation.files)
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    else:
        return done.stdout if as_recorded else None
    finally:
        shutil.rmtree(cwd, ignore_errors=True)


def _compared(console: bytes) -> list[bytes]:
    return [line for line in console.splitlines() if not line.startswith(_LOG_LINE)]


def _digests(directory: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in directory.iterdir() if path.is_file()}
