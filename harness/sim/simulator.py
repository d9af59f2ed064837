"""The protocol of all simulators: what one is asked for a run and answers, and which one is picked.

A simulator is the object ``SIMULATOR`` of the module that bears its name. It is chosen once, and
everything later asks the choice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

from harness.config.loading import Limits, Target
from harness.config.target import SimulatorName
from harness.core.errors import FvpMissing, ToolMissing, Unknown
from harness.sim.gdbstub.program import CountedOperators
from harness.sim.launch import Companion, Launch
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
