"""One process of a run: the simulator, from its start to its end, with whoever works beside it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import InfraError
from harness.log import LogParser, Observation
from harness.sim.simulator import Chosen, Companion, Job, Launch
from harness.system.confine import (
    ENVIRONMENT,
    Confinement,
    NotConfined,
    confined,
    ending_signal,
    required,
    what_lacks,
)
from harness.system.files import disk_errors
from harness.system.locks import working_in
from harness.system.process import Bounds, Ended, Stop, Watch, run
from harness.system.quota import QUOTA, Account, Excess

if TYPE_CHECKING:
    from harness.sim.monitor import CpuState
    from harness.sim.transcript import NpuUse


@dataclass(frozen=True)
class ProcessRun:
    """What came of one process."""

    job: Job
    launch: Launch
    argv: tuple[str, ...]  # the simulator's
    walls: Confinement
    environment: dict[str, str]
    ended: Ended
    observation: Observation
    cpu: CpuState | None
    npu: NpuUse | None
    guest_status: int | None  # what the guest is known to have ended itself with

    @property
    def stop(self) -> Stop:
        """What the program wrote too much of may also have been found when it had ended."""
        return self.ended.stop if self.excess is None else Stop.OUTPUT_LIMIT

    @property
    def excess(self) -> Excess | None:
        by_kernel = self._status[1] == signal.SIGXFSZ
        return self.ended.excess or (Excess.FILE_BYTES if by_kernel else None)

    @property
    def exit_status(self) -> int | None:
        """None when a signal or one of our limits ended it."""
        return self._status[0]

    @property
    def signal(self) -> int | None:
        return self._status[1]

    @property
    def _status(self) -> tuple[int | None, int | None]:
        """Through bubblewrap a status may stand for a signal, if it is not the guest's own. Both
        None: the guest ended, and nobody knows how the runner did."""
        status = self.ended.status
        if self.launch.has_shell and status == 0:
            return self.guest_status, None
        if self.walls.confined and self.guest_status is None and status is not None:
            signal = ending_signal(status)
            return (status, None) if signal is None else (None, signal)
        return status, self.ended.signal

    @property
    def ended_well(self) -> bool:
        """Nothing speaks against going on with the next one. Judging is another matter."""
        return (
            self.stop is Stop.EXITED
            and self._status == (0, None)
            and self.ended.complete
            and not self.observation.failures
            and self.observation.complete_line is not None
            and (self.npu is None or self.npu.stop is None)
        )


def run_process(
    chosen: Chosen,
    launch: Launch,
    job: Job,
    console: Path,
    require_confinement: bool | None = None,
) -> ProcessRun:
    """Run ``job`` to its end; its output goes to ``console``. ``require_confinement`` None: as
    ``confine.required`` has it.

    Raises InfraError when it could not be run.
    """
    missing = what_lacks()
    if missing and (required() if require_confinement is None else require_confinement):
        raise NotConfined(missing)
    work = job.work
    environment = {**ENVIRONMENT, **launch.environment}
    readable = [path.absolute() for path in launch.readable]
    with disk_errors("entering the run directory into the register of those in use"):
        working_in(work)
    with (
        disk_errors(f"running {chosen.require().name}"),
        confined(
            work,
            Path(launch.argv[0]),
            readable,
            file_bytes=QUOTA.file_bytes,
            memory_bytes=launch.memory_bytes,
        ) as walls,
        chosen.simulator.beside(chosen.target, job) as companion,
    ):
        argv = launch.argv + (() if companion is None else companion.words)
        shared = () if companion is None else companion.descriptors
        watcher = _Watcher(work, launch.monitor, companion)
        ended = run(
            [*walls.prefix, *argv],
            cwd=work,
            environment=environment,
            console=console,
            bounds=Bounds(job.limits.host, job.limits.stall),
            watch=watcher,
            descriptors=(*walls.descriptors, *shared),
        )
    if launch.monitor is not None:
        (work / launch.monitor).unlink(missing_ok=True)  # a socket in a record helps nobody
    _check_walls(walls.confined, ended.status, console)
    return ProcessRun(
        job=job,
        launch=launch,
        argv=argv,
        walls=walls,
        environment=environment,
        ended=ended,
        observation=watcher.parser.finish(),
        cpu=watcher.cpu,
        npu=None if companion is None else companion.use(),
        guest_status=None if companion is None else companion.status,
    )


class _Watcher(Watch):
    """Reads along: ends the run at a fatal line, and asks where the CPU is when a limit does."""

    def __init__(self, work: Path, monitor: str | None, companion: Companion | None) -> None:
        self.parser = LogParser()
        super().__init__(self.parser.feed)
        self.cpu: CpuState | None = None
        self._work = work
        self._account = Account(work)
        self._monitor = monitor
        self._companion = companion

    def started(self, console: int) -> None:
        if self._companion is not None:
            self._companion.console(console)

    def fatal(self) -> bool:
        return self.parser.final_failure

    def busy(self) -> bool:
        return self._companion is not None and self._companion.busy

    def excess(self) -> Excess | None:
        return self._account.excess()

    def before_kill(self, stop: Stop) -> None:
        if self._monitor is not None and stop is not Stop.FAULT:
            from harness.sim.monitor import cpu_state  # few runs are stopped

            self.cpu = cpu_state(self._work, self._monitor)


def _check_walls(confined: bool, status: int | None, console: Path) -> None:
    """Bubblewrap says why it did not start the program; that is no run at all."""
    if not confined or status != 1:
        return
    with console.open("rb") as file:
        said = file.read(500)
    if said.startswith(b"bwrap: "):
        message = said.decode("utf-8", "replace").splitlines()[0]
        raise InfraError(f"the simulator could not be confined: {message}", path=console)
