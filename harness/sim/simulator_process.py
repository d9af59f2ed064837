"""Runs one process of a run: the simulator, from start to end, with its companions."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import InfraError
from harness.sim.monitor import Monitor
from harness.sim.simulator import Companion, Launch, NpuUse
from harness.sim.transcript import Ending
from harness.system.confine import (
    ENVIRONMENT,
    Confinement,
    NotConfined,
    ResourceLimits,
    confined,
    ending_signal,
    required,
    what_lacks,
)
from harness.system.files import disk_errors, is_full
from harness.system.process import Bounds, Ended, Stop, Watch, run
from harness.system.quota import QUOTA, Excess, mend_modes


@dataclass(frozen=True)
class ProcessRun:
    """The result of one process. Complete when its companions have ended."""

    launch: Launch
    argv: tuple[str, ...]  # the simulator's
    walls: Confinement
    environment: dict[str, str]
    ended: Ended
    companions: tuple[Companion, ...]
    disk_full: bool

    @property
    def guest_status(self) -> int | None:
        """The guest's exit status, if a companion knows it."""
        return next((c.status for c in self.companions if c.status is not None), None)

    @property
    def began(self) -> bool | None:
        """Whether the guest was started; None when no companion knows."""
        known = [c.began for c in self.companions if c.began is not None]
        return all(known) if known else None

    @property
    def npu(self) -> NpuUse | None:
        return next((use for c in self.companions if (use := c.use()) is not None), None)

    @property
    def ending(self) -> Ending:
        """Return how the simulator ended.

        A status may stand for a signal (bubblewrap's, unless it is the guest's own) or for nothing
        (if a shell in the guest knows it); that the program wrote too much may only show after its
        end."""
        ended, status, by_signal = self.ended, self.ended.status, self.ended.signal
        if (self.launch.has_shell and status == 0) or (self.guest_status and status is not None):
            status = self.guest_status
        elif self.walls.confined and self.guest_status is None and status is not None:
            by_signal = ending_signal(status)
            status = status if by_signal is None else None
        excess = ended.excess or (Excess.FILE_BYTES if by_signal == signal.SIGXFSZ else None)
        return Ending(
            stop=ended.stop if excess is None else Stop.OUTPUT_LIMIT,
            exit_status=status,
            signal=by_signal,
            seconds=ended.wall_seconds,
            console_complete=ended.complete,
            console_bytes=ended.output_bytes,
            excess=excess,
            began=self.began,
            problem=next((c.problem for c in self.companions if c.problem), None),
            disk_full=self.disk_full,
        )


class GuestWatch(Watch):
    """Watches a simulator with its ``companions``. ``monitor``: QEMU's. Close it afterwards."""

    def __init__(
        self, launch: Launch, companions: Sequence[Companion], output: Callable[[bytes], object]
    ) -> None:
        super().__init__(output)
        alone = not any(companion.starts_guest for companion in companions)
        self.monitor = Monitor(alone) if launch.has_monitor else None
        own = () if self.monitor is None else (self.monitor,)
        self.companions: tuple[Companion, ...] = (*companions, *own)

    def started(self, console: int) -> None:
        for companion in self.companions:
            companion.started(console)

    def busy(self) -> bool:
        return any(companion.busy for companion in self.companions)

    def close(self) -> None:
        if self.monitor is not None:
            self.monitor.close()


def run_process(
    launch: Launch,
    work: Path,
    console: Path,
    bounds: Bounds,
    watch: GuestWatch,
    require_confinement: bool | None = None,
) -> ProcessRun:
    """Run a simulator in ``work`` to its end; its output goes to ``console``.

    ``require_confinement`` None: ``confine.required`` decides.

    Raises InfraError when it could not be run."""
    missing = None if launch.own else what_lacks()
    if missing and (required() if require_confinement is None else require_confinement):
        raise NotConfined(missing)
    environment = {**ENVIRONMENT, **launch.environment}
    # they name a descriptor of the harness
    own = () if watch.monitor is None else watch.monitor.words
    others = (c for c in watch.companions if c is not watch.monitor)
    argv = (*launch.argv, *(word for c in others for word in c.words))  # a user can run it
    with (
        disk_errors(f"running {Path(launch.argv[0]).name}"),
        _walls(launch, work) as walls,
    ):
        inherited = (number for c in watch.companions for number in c.descriptors)
        ended = run(
            [*walls.prefix, *argv, *own],
            cwd=work,
            environment=environment,
            console=console,
            bounds=bounds,
            watch=watch,
            descriptors=(*walls.descriptors, *inherited),
            input=launch.input,
        )
        started = walls.started() or ended.status != 1
    watch.close()
    full = is_full(work)
    mend_modes(work)
    done = ProcessRun(launch, argv, walls, environment, ended, watch.companions, full)
    if not started:
        with console.open("rb") as file:
            beginning = file.read(500)
        if beginning.startswith(b"bwrap: "):
            message = beginning.decode("utf-8", "replace").splitlines()[0]
            raise InfraError(f"the simulator could not be confined: {message}", path=console)
    return done


def _walls(launch: Launch, work: Path) -> AbstractContextManager[Confinement]:
    if launch.own:
        return nullcontext(
            Confinement((), confined=False, missing="the program ran outside of this machine")
        )
    largest = max(QUOTA.file_bytes, launch.writable.stat().st_size if launch.writable else 0)
    return confined(
        work,
        Path(launch.argv[0]),
        [path.absolute() for path in launch.readable],
        ResourceLimits(largest, launch.memory_bytes, launch.cpu_seconds),
        forks=launch.forks,
        also_writable=launch.writable,
        has_account=launch.has_account,
    )
