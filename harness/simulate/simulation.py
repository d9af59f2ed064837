"""Firmware and a program with inputs -> Transcript, on the simulator that was chosen.

Layout of a run's directory::

    console.log    every byte that the simulator and the target wrote
    work/          the guest's current directory, the only place it can write to:
                   the program, inputs and outputs (guest_files.py has their names)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from harness.errors import InfraError
from harness.observe import Observation
from harness.observe.reader import Reader
from harness.simulate.guest_files import input_name, output_base, program_name
from harness.simulate.launch import Companion, Job
from harness.simulate.monitor import CpuState, cpu_state
from harness.simulate.pick import Chosen
from harness.simulate.transcript import CONSOLE, WORK, LeftFile, Transcript
from harness.system.confine import confinement, ending_signal
from harness.system.files import disk_errors
from harness.system.process import Bounds, Ended, Stop, Watch, run
from harness.target.loading import global_factor


class _Firmware(Protocol):
    """What is needed of a Firmware."""

    @property
    def elf(self) -> Path: ...
    @property
    def key(self) -> str: ...
    @property
    def variant(self) -> str: ...


def simulate(
    chosen: Chosen,
    firmware: _Firmware,
    program: Path,
    sets: Sequence[Sequence[Path]],
    *,
    run_dir: Path,
    profile: bool = False,
    limit_factor: float | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Transcript:
    """Run ``program`` once on each set of input files, all sets in one process.

    ``run_dir/work`` must not exist yet, so whatever is found in it was made by this run. A run
    that ends badly is a Transcript; InfraError is for a run that could not be made. The limits
    are multiplied by ``limit_factor``; None takes ``$HIL_LIMIT_FACTOR``.
    """
    target, tool = chosen.target, chosen.require()
    limits = target.limits.scaled(global_factor() if limit_factor is None else limit_factor)
    arguments = runner_arguments(program, [len(files) for files in sets], profile)
    work = run_dir.absolute() / WORK
    native = target.variant(firmware.variant).environment
    job = Job(firmware.elf.absolute(), arguments, work, limits, native)
    launch = chosen.simulator.launch(target, tool, job)
    with disk_errors("preparing the run directory"):
        placed = _place(work, program, sets, launch.files)
    walls = confinement(work, Path(launch.argv[0]), [path.absolute() for path in launch.readable])
    environment = {**_environment(), **launch.environment}
    started = datetime.now(timezone.utc)
    with (
        chosen.simulator.beside(target, job) as companion,
        disk_errors(f"running {tool.name}"),
    ):
        watcher = _Watcher(work, launch.monitor, on_output, companion)
        ended = run(
            [*walls.prefix, *launch.argv],
            cwd=work,
            environment=environment,
            console=run_dir / CONSOLE,
            bounds=Bounds(limits.host, limits.stall),
            watch=watcher.watch(),
        )
    if launch.monitor is not None:
        (work / launch.monitor).unlink(missing_ok=True)  # a socket in a record helps nobody
    _check_walls(walls.confined, ended.status, run_dir / CONSOLE)
    own_end = companion is not None and companion.status is not None
    exit_status, signal = _status(walls.confined and not own_end, ended)
    return Transcript(
        run_dir=run_dir,
        target=target.name,
        variant=firmware.variant,
        build_key=firmware.key,
        simulator=chosen.name,
        native=chosen.simulator.native,
        version=tool.version,
        arguments=arguments,
        argv=launch.argv,
        prefix=walls.prefix,
        environment=environment,
        confined=walls.confined,
        unconfined_reason=walls.reason,
        licence=launch.licence,
        stop=ended.stop,
        exit_status=exit_status,
        signal=signal,
        seconds=ended.wall_seconds,
        started=started.isoformat(timespec="milliseconds"),
        ended=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        console_bytes=ended.output_bytes,
        console_times=ended.times,
        console_complete=ended.complete,
        outputs=tuple(map(output_base, range(len(sets)))),
        files=_left(work, placed),
        cpu=watcher.cpu,
        npu=None if companion is None else companion.use(),
        observation=watcher.observation(),
    )


class _Watcher:
    """Reads along: ends the run at a fatal line, and asks where the CPU is when a limit does."""

    def __init__(
        self,
        work: Path,
        monitor: str | None,
        on_output: Callable[[bytes], None] | None,
        companion: Companion | None,
    ) -> None:
        self.cpu: CpuState | None = None
        self._work = work
        self._monitor = monitor
        self._on_output = on_output
        self._companion = companion
        self._reader = Reader()

    def watch(self) -> Watch:
        return Watch(
            self._output,
            lambda: self._reader.final_failure,
            self._before_kill,
            self._busy,
            None if self._companion is None else self._companion.console,
        )

    def observation(self) -> Observation:
        return self._reader.finish()

    def _output(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._on_output is not None:
            self._on_output(data)

    def _busy(self) -> bool:
        return self._companion is not None and self._companion.busy

    def _before_kill(self, stop: Stop) -> None:
        if self._monitor is not None and stop is not Stop.FAULT:
            self.cpu = cpu_state(self._work, self._monitor)


def runner_arguments(
    program: Path, counts: Sequence[int], profile: bool = False
) -> tuple[str, ...]:
    """The runner's command line; each ``-o`` starts the next input set."""
    words = ["executor_runner", "-m", program_name(program)]
    if profile:
        words.append("-p")
    for number, count in enumerate(counts):
        words += ["-o", output_base(number)]
        for index in range(count):
            words += ["-i", input_name(number, index)]
    return tuple(words)


def _place(
    work: Path, program: Path, sets: Sequence[Sequence[Path]], files: Mapping[str, bytes]
) -> frozenset[str]:
    """Fill the guest's directory with copies: the guest may write to what it finds there."""
    work.mkdir(parents=True)
    copies = {program_name(program): program}
    for number, paths in enumerate(sets):
        copies.update({input_name(number, index): path for index, path in enumerate(paths)})
    for name, source in copies.items():
        shutil.copyfile(source, work / name)
    for name, content in files.items():
        (work / name).write_bytes(content)
    return frozenset({*copies, *files})


def _environment() -> dict[str, str]:
    """The child's whole environment, but for what its simulator adds."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}


def _status(ambiguous: bool, ended: Ended) -> tuple[int | None, int | None]:
    """Exit status and signal. ``ambiguous``: the status may stand for a signal."""
    if ambiguous and ended.status is not None:
        signal = ending_signal(ended.status)
        return (ended.status, None) if signal is None else (None, signal)
    return ended.status, ended.signal


def _check_walls(confined: bool, status: int | None, console: Path) -> None:
    """Bubblewrap says why it did not start the program; that is no run at all."""
    if not confined or status != 1:
        return
    with console.open("rb") as file:
        said = file.read(500)
    if said.startswith(b"bwrap: "):
        message = said.decode("utf-8", "replace").splitlines()[0]
        raise InfraError(f"the simulator could not be confined: {message}", path=console)


def _left(work: Path, placed: frozenset[str]) -> tuple[LeftFile, ...]:
    found = []
    for folder, _, names in os.walk(work):
        for name in names:
            path = Path(folder) / name
            relative = str(path.relative_to(work))
            if relative not in placed and path.is_file() and not path.is_symlink():
                found.append(LeftFile(relative, path.stat().st_size))
    return tuple(sorted(found, key=lambda file: file.name))
