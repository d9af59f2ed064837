"""Transcript: all data of one run that a verdict needs, to judge it again without a simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.core.simulator_name import SimulatorName
from harness.log.events import Observation
from harness.sim.monitor import CpuState
from harness.sim.run_files import CONSOLE
from harness.sim.simulator import NpuUse
from harness.system.files import read_regular
from harness.system.process import Stop
from harness.system.quota import Excess


@dataclass(frozen=True)
class SimulatorFacts:
    """The simulator of the result, and whether it was confined."""

    name: SimulatorName
    version: str
    confined: bool
    unconfined_reason: str | None  # or what the confinement lacks
    argv: tuple[str, ...]
    environment: dict[str, str]  # all of the child's environment
    eula: str | None = None  # how the user accepted an FVP's licence
    differences: tuple[str, ...] = ()  # features of the board that it lacks


@dataclass(frozen=True)
class Ending:
    """How the simulator's process ended.

    ``exit_status``: None when a signal or a limit ended it, and when it is unknown. ``native``: the
    process was the runner itself, not a simulator. ``where``: what the CPU was doing when a limit
    ended the run. ``excess``: the output limit that the guest exceeded; then its files are gone.
    ``console_complete``: False when the console was still open after the end, so that its rest is
    not known. ``console_bytes``: its size; None when it was not counted. ``rewritten``: the files,
    program and inputs, that the guest had to read and changed. ``began``: whether the guest
    (under Linux the runner) was started, as the simulator or its driving process reports outside
    of the console; None: neither reports it. ``problem``: the line with which the harness ended
    the run. ``disk_full``: whether the disk of the run's directory was full at the end.
    """

    stop: Stop
    exit_status: int | None
    signal: int | None
    seconds: float
    native: bool = False
    where: dict[str, Any] | None = None
    console_complete: bool = True
    console_bytes: int | None = None
    excess: Excess | None = None
    rewritten: tuple[str, ...] = ()
    began: bool | None = None
    problem: str | None = None
    disk_full: bool = False


@dataclass(frozen=True)
class Transcript:
    """The outcome of a run.

    If it had several processes, its start and end are the last one's; the seconds are those of all.
    ``run_dir`` has the console and the files that the guest left."""

    run_dir: Path
    simulator: SimulatorFacts
    ending: Ending
    console_times: tuple[tuple[int, float], ...]  # (bytes so far, seconds since the start)
    cpu: CpuState | None = None  # at the moment one of our limits ended the run
    npu: NpuUse | None = None  # None: no model of one was there
    stands_in: tuple[str, ...] = ()  # as in Launch
    starts: tuple[int, ...] = (0,)  # of each process: where its output begins in the console
    # Parsed during the run. Not stored: parsing the console again gives the same.
    observation: Observation | None = field(default=None, compare=False, repr=False)

    def console(self) -> bytes:
        """Every byte of the target's stdout and stderr, and the simulator's, in order."""
        return read_regular(self.run_dir / CONSOLE)

    def came(self, line: int | None) -> float:
        """Return the seconds from the start to the end of a line of the console, or to its end.

        Lines count from 1. Up to a tenth of a second early, as ``console_times`` are."""
        lines = self.console().split(b"\n")[:line]
        size = sum(len(text) + 1 for text in lines) - (line is None)
        late = [seconds for so_far, seconds in self.console_times if so_far >= size]
        return min(late, default=self.ending.seconds)
