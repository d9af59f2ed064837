"""What a simulator is asked for one run, and what it answers: one protocol for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.config.loading import Limits, Target
    from harness.config.model import SimulatorName
    from harness.sim.gdbstub.program import CountedOperators
    from harness.sim.transcript import NpuUse
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


@dataclass(frozen=True)
class Launch:
    """How to start a simulator for one run.

    ``readable``: what it must be able to read, besides the system. ``monitor``: a socket in the
    guest's directory that answers QEMU's monitor. ``licence``: how the user said that the
    simulator's licence is accepted. ``stands_in``: what of the firmware is not run but done by
    someone else, in sentences. ``memory_bytes``: it has no use for more of its own. ``has_shell``:
    the guest's shell says how the runner ended, of which the simulator's own end says nothing.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # to put into the guest's directory
    readable: tuple[Path, ...] = ()
    monitor: str | None = None
    licence: str | None = None
    stands_in: tuple[str, ...] = ()
    memory_bytes: int | None = None
    has_shell: bool = False


class Companion(Protocol):
    """Something that works beside the simulator while a guest runs."""

    @property
    def words(self) -> tuple[str, ...]:
        """More of the simulator's arguments."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What it has to inherit for them."""

    @property
    def busy(self) -> bool:
        """It computes for the guest right now, which is not idle then, however still it is."""

    @property
    def status(self) -> int | None:
        """What the guest ended itself with, afterwards; None when nobody can tell."""

    def use(self) -> NpuUse | None:
        """None: no NPU was there."""

    def console(self, read_end: int) -> None:
        """The pipe that the simulator writes to, for who has something to say there, too."""


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

    def beside(self, target: Target, job: Job) -> AbstractContextManager[Companion | None]:
        """While the block runs, the guest has what the simulator itself lacks."""
