"""The protocol of all simulators: how one is started for a run and what works beside it, and which
one is picked.

A simulator is the object ``SIMULATOR`` of the module that bears its name. It is chosen once, and
everything later asks the choice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Protocol

from harness.config.loading import Limits, Target
from harness.config.target import SimulatorName
from harness.core.errors import FvpMissing, ToolMissing, Unknown
from harness.core.verdict import Word
from harness.sim.gdbstub.program import CountedOperators
from harness.system.settings import FvpPolicy, in_ci, settings
from harness.system.toolchain import Tool


@dataclass(frozen=True)
class Job:
    """One run: ``elf`` with the runner's ``arguments``, in ``work``, its current directory.

    ``environment``: of a native program, by its build variant. ``counted``: operators whose
    instructions are counted through the gdb stub, for a runner that does not count them itself.
    ``root``: the root file system with the ELF's shared libraries.
    """

    elf: Path
    arguments: tuple[str, ...]
    work: Path
    limits: Limits
    environment: Mapping[str, str] = field(default_factory=dict)
    counted: CountedOperators | None = None
    root: Path | None = None


class NpuResult(Word):
    """Why the model of an NPU did not run a command stream to its end."""

    FAULT = "fault"  # the NPU itself would stop
    REFUSED = "refused"  # the guest's request is wrong
    UNSUPPORTED = "unsupported"  # the model does not know it
    BROKEN = "broken"  # the model failed


@dataclass(frozen=True)
class NpuStop:
    """A command stream that the NPU's model did not run to its end.

    ``offset``: bytes of the command stream that were read.
    """

    job: int  # counted from 1
    result: NpuResult
    message: str
    offset: int = 0


@dataclass(frozen=True)
class NpuUse:
    """What a model of an NPU beside the simulator was asked for."""

    jobs: int
    stop: NpuStop | None = None  # the first

    def after(self, jobs: int) -> NpuUse:
        """The same when ``jobs`` came before."""
        stop = None if self.stop is None else replace(self.stop, job=self.stop.job + jobs)
        return replace(self, jobs=self.jobs + jobs, stop=stop)


@dataclass(frozen=True)
class Launch:
    """How to start a simulator for one run.

    ``readable``: what it must be able to read, besides the system. ``licence``: how the user said
    that the simulator's licence is accepted. ``stands_in``: what of the firmware is not run but
    done by someone else, in sentences. ``memory_bytes``: it has no use for more of its own.
    ``cpu_seconds``: after so much of the CPU it is ended. ``has_shell``: the guest's shell says how
    the runner ended, of which the simulator's own end says nothing. ``forks``: it starts processes.
    ``own``: a process of the harness, in which no guest runs: it is not confined, and ends by
    itself when nothing comes.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # to put into the guest's directory
    readable: tuple[Path, ...] = ()
    has_monitor: bool = False  # QEMU's
    licence: str | None = None
    stands_in: tuple[str, ...] = ()
    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    has_shell: bool = False
    forks: bool = False
    own: bool = False


class Companion:
    """Something that works beside the simulator while a guest runs.

    ``words`` are more of the simulator's arguments, ``descriptors`` what it inherits for them.
    ``busy``: it computes for the guest right now, which is not idle then, however still it is.
    ``status``: what the guest ended itself with, known afterwards; None when nobody can tell.
    """

    words: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    busy = False
    status: int | None = None

    def started(self, read_end: int) -> None:
        """The simulator has its descriptors. ``read_end``: of the pipe that it writes to."""

    def use(self) -> NpuUse | None:
        """None: it has no NPU."""
        return None


class Simulator(Protocol):
    """A way to run firmware. ``native``: the process is the runner itself."""

    @property
    def name(self) -> SimulatorName: ...
    @property
    def native(self) -> bool: ...

    def find(self, target: Target) -> Tool | None:
        """The program that simulates this target; None when it is not installed."""

    def require(self, target: Target) -> Tool:
        """The same. ToolMissing, with how to get it."""

    def launch(self, target: Target, tool: Tool, job: Job) -> Launch:
        """UsageError: the job's ELF cannot be run on it."""

    def beside(self, target: Target, job: Job) -> AbstractContextManager[Sequence[Companion]]:
        """While the block runs, the guest has what the simulator itself lacks."""


AUTO = "auto"


@dataclass(frozen=True)
class Chosen:
    """A simulator for a target.

    ``target`` is as it is there: memory, CPU and build options of what the simulator has.
    ``differences``: what of the board it does not have. ``tool`` is None when it is not installed.
    """

    simulator: Simulator
    target: Target
    differences: tuple[str, ...]
    tool: Tool | None

    @property
    def name(self) -> SimulatorName:
        return self.simulator.name

    def require(self) -> Tool:
        """Raises ToolMissing, with how to get it."""
        return self.tool or self.simulator.require(self.target)


def pick(target: Target, wanted: str = AUTO) -> Chosen:
    """The simulator for a target; AUTO is the first of the target's order that is installed.

    One that was asked for by name is never replaced by another. Unknown: the target has none
    of this name.
    """
    name = _named(target, wanted) if wanted != AUTO else _first_installed(target)
    there = simulator(name)
    return Chosen(there, target.on(name), target.differences(name), there.find(target))


def simulator(name: SimulatorName) -> Simulator:
    """The object behind a name: SIMULATOR of the module that bears it."""
    found: Simulator = import_module(f"harness.sim.{name}").SIMULATOR
    return found


def available_simulators(target: Target) -> tuple[SimulatorName, ...]:
    """Those of the target's simulators that are installed."""
    return tuple(
        name for name in target.simulators.names if simulator(name).find(target) is not None
    )


def missing_policy(environ: Mapping[str, str] = os.environ) -> FvpPolicy:
    """What a missing FVP means: as the settings have it, else "fail" in CI and "skip" at a desk.

    Raises SettingsError.
    """
    default: FvpPolicy = "fail" if in_ci(environ) else "skip"
    return settings(environ=environ).fvp_missing or default


def skip_without_fvp(chosen: Chosen) -> None:
    """FvpMissing when the run would need an FVP that is not installed."""
    if chosen.name is not SimulatorName.FVP or chosen.tool is not None:
        return
    try:
        chosen.require()
    except ToolMissing as error:
        raise FvpMissing(error) from error


def _named(target: Target, wanted: str) -> SimulatorName:
    known = {str(name): name for name in target.simulators.names}
    if wanted not in known:
        raise Unknown(
            f"target {target.name} has no simulator {wanted!r}", wanted, known, listing="it has: "
        )
    return known[wanted]


def _first_installed(target: Target) -> SimulatorName:
    order = target.simulators.auto
    return next((n for n in order if simulator(n).find(target) is not None), order[-1])
