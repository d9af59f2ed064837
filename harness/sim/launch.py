"""How a simulator is started for one run, and what works beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.sim.npu_use import NpuUse


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
