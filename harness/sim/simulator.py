"""The protocol of all simulators (how one is started, and its companions), and the choice of one.

A simulator is the object ``SIMULATOR`` of the module with its name. It is chosen once, in a
``Chosen``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.core.errors import FvpMissing, ToolMissing, Unknown
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Word
from harness.sim.gdbstub.host_calls import CountedOperators
from harness.sim.gdbstub.tensors import TensorFiles
from harness.system import toolchain
from harness.system.settings import FvpPolicy, in_ci, settings
from harness.system.toolchain import Tool

if TYPE_CHECKING:  # the stand-in, which starts for each test of a suite, needs no target
    from harness.config.target import Limits, Target

_Section = TypeVar("_Section")


@dataclass(frozen=True)
class GuestJob:
    """One run: ``elf`` with the runner's ``arguments``, in ``work``, its current directory.

    ``counted``: operators whose instructions are counted through the gdb stub, for a runner that
    does not count them itself. ``root``: the root file system with the ELF's shared libraries.
    ``tensors``: the inputs and outputs of a program that reads no files.
    """

    elf: Path
    arguments: tuple[str, ...]
    work: Path
    limits: Limits
    counted: CountedOperators | None = None
    root: Path | None = None
    tensors: TensorFiles | None = None


class NpuResult(Word):
    """Why the model of an NPU did not run a command stream to its end."""

    FAULT = "fault"  # the NPU itself would stop
    REFUSED = "refused"  # the guest's request is invalid
    UNSUPPORTED = "unsupported"  # the model does not support it
    BROKEN = "broken"  # the model failed


@dataclass(frozen=True)
class NpuStop:
    """A command stream that did not run to its end. ``offset``: bytes of it that were read."""

    job: int  # counted from 1
    result: NpuResult
    message: str
    offset: int = 0


@dataclass(frozen=True)
class NpuUse:
    """How much a guest used the model of an NPU."""

    jobs: int
    stop: NpuStop | None = None  # the first

    def after(self, jobs: int) -> NpuUse:
        """Return the use when ``jobs`` earlier jobs are counted too."""
        stop = None if self.stop is None else replace(self.stop, job=self.stop.job + jobs)
        return replace(self, jobs=self.jobs + jobs, stop=stop)


@dataclass(frozen=True)
class Launch:
    """How to start a simulator for one run.

    ``readable``: files that it must read, besides the system's. ``licence``: how the user accepted
    the simulator's licence. ``stands_in``: sentences about what is not as on the board, or not
    known of the simulator. ``memory_bytes``: the most that it needs. ``cpu_seconds``: its limit of
    CPU time. ``has_shell``: the guest's shell reports how the runner ended; the simulator's own
    status does not. ``forks``: it starts processes. ``own``: a process of the harness without a
    guest; it is not confined, and ends by itself when it receives nothing. ``input``: a descriptor
    that the guest reads as its console; None: an empty one. ``writable``: a file outside of the
    guest's directory that it may change. ``has_account``: a program asks who its user is, as ssh
    does.
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
    input: int | None = None
    writable: Path | None = None
    has_account: bool = False


class Companion:
    """Something that runs next to the simulator while a guest runs.

    ``words``: further arguments of the simulator. ``descriptors``: those it inherits for them.
    ``busy``: it computes for the guest now, so a silent guest is not stalled. ``status``: the
    guest's exit status, known afterwards; None when it is unknown. ``began``: whether the guest
    (under Linux the runner) was started, known afterwards; None: it cannot tell. ``problem``: the
    line that it wrote to the console, if it ended the run. ``starts_guest``: the simulator waits
    for it.
    """

    words: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    busy = False
    status: int | None = None
    began: bool | None = None
    problem: str | None = None
    starts_guest = False

    def started(self, read_end: int) -> None:
        """Begin: the simulator has its descriptors. ``read_end``: of its output pipe."""

    def use(self) -> NpuUse | None:
        """Return the use of its NPU; None without one."""
        return None


def section(found: _Section | None) -> _Section:
    """Return a target's settings for a simulator, which runs no target without."""
    assert found is not None
    return found


class Simulator(ABC):
    """A way to run firmware. ``native``: the process is the runner itself."""

    name: SimulatorName
    native = False

    def find(self, target: Target, checkout: Path | None = None) -> Tool | None:
        """Return the simulator's program, if installed. ``checkout``: may have installed it."""
        return toolchain.find(getattr(target.simulators, self.name).executable)

    def require(self, target: Target) -> Tool:
        """Return the program that ``find`` returns, installed first where that is allowed.

        Raises ToolMissing, with a hint how to install it."""
        return toolchain.require(getattr(target.simulators, self.name).executable)

    def limits(self, target: Target, program: Path, sets: int) -> Limits:
        """Those of a target, for ``sets`` inferences of a program."""
        return target.limits

    @abstractmethod
    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        """How to start it. Raises UsageError for an ELF that it cannot run."""

    def beside(self, target: Target, job: GuestJob) -> AbstractContextManager[Sequence[Companion]]:
        """While the block runs, provides what the simulator itself lacks."""
        return nullcontext(())


AUTO = "auto"


@dataclass(frozen=True)
class Chosen:
    """A simulator for a target.

    ``target``: with the memory, CPU and build options of this simulator. ``differences``: features
    of the board that it lacks. ``tool``: None when it is not installed.
    """

    simulator: Simulator
    target: Target
    differences: tuple[str, ...]
    tool: Tool | None

    @property
    def name(self) -> SimulatorName:
        return self.simulator.name

    def require(self) -> Tool:
        """Return the simulator's program. Raises ToolMissing, with a hint how to install it."""
        return self.tool or self.simulator.require(self.target)


def pick(target: Target, wanted: str = AUTO, checkout: Path | None = None) -> Chosen:
    """Return the simulator for a target; AUTO is the first of the target's order that is installed.

    A simulator requested by name is never replaced by another. ``checkout``: as in ``find``. Raises
    Unknown when the target has none of this name."""
    if wanted == AUTO:
        order = target.simulators.auto
        name = next(
            (n for n in order if simulator(n).find(target, checkout) is not None), order[-1]
        )
    else:
        known = {str(name): name for name in target.simulators.names}
        if wanted not in known:
            message = f"target {target.name} has no simulator {wanted!r}"
            raise Unknown(message, wanted, known, listing="it has: ")
        name = known[wanted]
    chosen = simulator(name)
    return Chosen(chosen, target.on(name), target.differences(name), chosen.find(target, checkout))


def simulator(name: SimulatorName) -> Simulator:
    """Return the object SIMULATOR of the module with this name."""
    instance: Simulator = import_module(f"harness.sim.{name}").SIMULATOR
    return instance


def available_simulators(target: Target) -> tuple[SimulatorName, ...]:
    """Return the target's simulators that are installed."""
    return tuple(
        name for name in target.simulators.names if simulator(name).find(target) is not None
    )


def missing_fvp_policy(environ: Mapping[str, str] = os.environ) -> FvpPolicy:
    """Return the setting, else "fail" in CI and "skip" at a desk. Raises SettingsError."""
    default: FvpPolicy = "fail" if in_ci(environ) else "skip"
    return settings(environ=environ).fvp_missing or default


def skip_without_fvp(chosen: Chosen) -> None:
    """Raise FvpMissing when the run needs an FVP that is not installed."""
    if chosen.name is not SimulatorName.FVP or chosen.tool is not None:
        return
    try:
        chosen.require()
    except ToolMissing as error:
        raise FvpMissing(error) from error
