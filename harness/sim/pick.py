"""Which simulator a case runs on. It is chosen once, and everything later asks the choice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from harness.config.loading import Target
from harness.config.model import SimulatorName
from harness.core.errors import FvpMissing, ToolMissing, Unknown
from harness.sim.launch import Simulator
from harness.system.settings import FvpPolicy, settings
from harness.system.toolchain import Tool
from harness.system.variables import in_ci

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
