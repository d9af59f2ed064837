"""Transcript: all that is known about one run, enough to judge it again without a simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.config.model import SimulatorName
from harness.log import Observation
from harness.sim.monitor import CpuState
from harness.sim.npu_use import NpuUse
from harness.sim.run_files import CONSOLE, WORK, LeftFile, output_name
from harness.system.process import Stop
from harness.system.quota import Excess


@dataclass(frozen=True)
class Transcript:
    """Of a run in several processes, how it ended and how it was started is the last one's; the
    seconds are those of all.
    """

    run_dir: Path
    target: str
    variant: str
    build_key: str
    simulator: SimulatorName  # which one gave the result
    native: bool  # no simulator: the process was the runner itself
    version: str  # the simulator's
    arguments: tuple[str, ...]  # the runner's own command line
    argv: tuple[str, ...]  # the simulator's
    prefix: tuple[str, ...]  # what was put in front of it to confine it
    environment: dict[str, str]  # all of the child's environment
    confined: bool
    unconfined_reason: str | None  # or what the confinement lacks
    licence: str | None  # how the user said that the simulator's licence is accepted
    stop: Stop
    exit_status: int | None  # None: a signal or one of our limits ended it
    signal: int | None
    seconds: float
    started: str  # UTC, ISO 8601
    ended: str
    console_bytes: int
    console_times: tuple[tuple[int, float], ...]  # (bytes so far, seconds since the start)
    console_complete: bool  # False: somebody kept the console open after the end
    outputs: tuple[str, ...]  # the base of the output files of each input set: "s0"
    files: tuple[LeftFile, ...]
    cpu: CpuState | None = None  # at the moment one of our limits ended the run
    npu: NpuUse | None = None  # None: no model of one was there
    stands_in: tuple[str, ...] = ()  # as in Launch
    excess: Excess | None = None  # what the guest wrote too much of; then its files are gone
    starts: tuple[int, ...] = (0,)  # of each process: where its output begins in the console
    # What was read along; the same that reading the console again gives, and so not stored.
    observation: Observation | None = field(default=None, compare=False, repr=False)

    @property
    def console_path(self) -> Path:
        """Every byte of the target's stdout and stderr, and the simulator's, in order."""
        return self.run_dir / CONSOLE

    @property
    def work(self) -> Path:
        """The guest's current directory."""
        return self.run_dir / WORK

    def console(self) -> bytes:
        return self.console_path.read_bytes()

    def came(self, line: int | None) -> float:
        """Seconds from the start to the end of a line of the console, counted from 1, or to its
        last byte. Up to a tenth of a second early, as ``console_times`` are."""
        lines = self.console().split(b"\n")[:line]
        size = sum(len(text) + 1 for text in lines) - (line is None)
        late = [seconds for so_far, seconds in self.console_times if so_far >= size]
        return min(late, default=self.seconds)

    def output(self, input_set: int, index: int) -> Path | None:
        """The file of one output if this run made it as a regular file."""
        name = output_name(self.outputs[input_set], index)
        return self.work / name if any(f.name == name for f in self.files) else None
