"""Firmware and a program with inputs -> Transcript, on the simulator that was chosen.

Layout of a run's directory::

    console.log    every byte that the simulator and the target wrote
    work/          the guest's current directory, the only place it can write to:
                   program.pte, inputs s<set>i<n>.bin, outputs s<set>-<n>.bin
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from harness.errors import FvpMissing, InfraError, ToolMissing, UsageError
from harness.observe import Observation, Reader
from harness.simulate import fvp, host, qemu
from harness.simulate.launch import Launch
from harness.simulate.monitor import CpuState, cpu_state
from harness.simulate.npu import Attendant, beside
from harness.simulate.transcript import CONSOLE, WORK, LeftFile, Transcript
from harness.system import toolchain
from harness.system.confine import confinement
from harness.system.disk import disk_errors
from harness.system.process import Bounds, Ended, Stop, Watch, run
from harness.target.loading import Limits, Target, global_factor

__all__ = [
    "LeftFile",
    "Transcript",
    "available_simulators",
    "choose",
    "runner_arguments",
    "simulate",
    "skip_without_fvp",
]

AUTO = "auto"


class _Firmware(Protocol):
    """What is needed of a Firmware."""

    @property
    def elf(self) -> Path: ...
    @property
    def key(self) -> str: ...
    @property
    def variant(self) -> str: ...


def simulate(
    target: Target,
    firmware: _Firmware,
    program: Path,
    sets: Sequence[Sequence[Path]],
    *,
    run_dir: Path,
    simulator: str = AUTO,
    profile: bool = False,
    limit_factor: float | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Transcript:
    """Run ``program`` once on each set of input files, all sets in one process.

    ``run_dir/work`` must not exist yet, so whatever is found in it was made by this run. A run
    that ends badly is a Transcript; InfraError is for a run that could not be made. The limits
    are multiplied by ``limit_factor``; None takes ``$HIL_LIMIT_FACTOR``.
    """
    name = choose(target, simulator)
    limits = target.limits.scaled(global_factor() if limit_factor is None else limit_factor)
    arguments = runner_arguments(program, [len(files) for files in sets], profile)
    work = run_dir.absolute() / WORK
    launch = _launch(target, name, firmware, limits, arguments, work)
    with disk_errors("preparing the run directory"):
        placed = _place(work, program, sets, launch.files)
    walls = confinement(work, Path(launch.argv[0]), [path.absolute() for path in launch.readable])
    environment = {**_environment(), **launch.environment}
    started = datetime.now(timezone.utc)
    with beside(name, target, work) as npu, disk_errors(f"running {launch.tool.name}"):
        watcher = _Watcher(work, launch.monitor, on_output, npu)
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
    exit_status, signal = _status(walls.confined, ended)
    return Transcript(
        run_dir=run_dir,
        target=target.name,
        variant=firmware.variant,
        build_key=firmware.key,
        simulator=name,
        version=launch.tool.version,
        arguments=arguments,
        argv=launch.argv,
        prefix=walls.prefix,
        environment=environment,
        confined=walls.confined,
        unconfined_reason=walls.reason,
        stop=ended.stop,
        exit_status=exit_status,
        signal=signal,
        seconds=ended.wall_seconds,
        started=started.isoformat(timespec="milliseconds"),
        ended=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        console_bytes=ended.output_bytes,
        console_times=ended.times,
        console_complete=ended.complete,
        outputs=tuple(f"s{index}" for index in range(len(sets))),
        files=_left(work, placed),
        cpu=watcher.cpu,
        npu=None if npu is None else npu.use(),
        observation=watcher.observation(),
    )


class _Watcher:
    """Reads along: ends the run at a fatal line, and asks where the CPU is when a limit does."""

    def __init__(
        self,
        work: Path,
        monitor: str | None,
        on_output: Callable[[bytes], None] | None,
        npu: Attendant | None,
    ) -> None:
        self.cpu: CpuState | None = None
        self._work = work
        self._monitor = monitor
        self._on_output = on_output
        self._npu = npu
        self._reader = Reader()

    def watch(self) -> Watch:
        return Watch(
            self._output, lambda: self._reader.final_failure, self._before_kill, self._busy
        )

    def observation(self) -> Observation:
        return self._reader.finish()

    def _output(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._on_output is not None:
            self._on_output(data)

    def _busy(self) -> bool:
        return self._npu is not None and self._npu.busy

    def _before_kill(self, stop: Stop) -> None:
        if self._monitor is not None and stop != "fault":
            self.cpu = cpu_state(self._work, self._monitor)


def choose(target: Target, simulator: str = AUTO) -> str:
    """The simulator's name. One that was asked for by name is never replaced by another."""
    known = target.simulators
    if simulator == AUTO:
        order = target.settings.auto
        usable = available_simulators(target)
        return next((name for name in order if name in usable), order[-1])
    if simulator not in known:
        close = difflib.get_close_matches(simulator, known, n=1)
        raise UsageError(
            f"target {target.name} has no simulator {simulator!r}",
            hint=f"did you mean {close[0]}?" if close else "it has: " + ", ".join(known),
            simulator=simulator,
            known=list(known),
        )
    return simulator


def skip_without_fvp(target: Target, simulator: str = AUTO) -> None:
    """FvpMissing when the run would need an FVP that is not installed."""
    if choose(target, simulator) != "fvp" or _installed(target, "fvp"):
        return
    assert target.settings.fvp is not None
    try:
        toolchain.require_fvp(target.settings.fvp.executable, target.settings.fvp.package)
    except ToolMissing as error:
        raise FvpMissing(error.message, hint=error.hint, **error.facts) from error


def available_simulators(target: Target) -> tuple[str, ...]:
    """Those of the target's simulators that are installed."""
    return tuple(name for name in target.simulators if _installed(target, name))


def runner_arguments(
    program: Path, counts: Sequence[int], profile: bool = False
) -> tuple[str, ...]:
    """The runner's command line; each ``-o`` starts the next input set."""
    words = ["executor_runner", "-m", _program_name(program)]
    if profile:
        words.append("-p")
    for number, count in enumerate(counts):
        words += ["-o", f"s{number}"]
        for index in range(count):
            words += ["-i", f"s{number}i{index}.bin"]
    return tuple(words)


def _program_name(program: Path) -> str:
    return "program.bpte" if program.suffix == ".bpte" else "program.pte"


def _installed(target: Target, name: str) -> bool:
    settings = target.settings
    if name == "fvp" and settings.fvp is not None:
        return toolchain.find_fvp(settings.fvp.executable) is not None
    if name == "qemu" and settings.qemu is not None:
        return toolchain.find(settings.qemu.executable) is not None
    return True


def _launch(
    target: Target,
    name: str,
    firmware: _Firmware,
    limits: Limits,
    arguments: Sequence[str],
    work: Path,
) -> Launch:
    """ToolMissing when the simulator is not installed."""
    settings = target.settings
    elf = firmware.elf.absolute()
    if name == "qemu" and settings.qemu is not None:
        return qemu.launch(settings.qemu, elf, arguments)
    if name == "fvp" and settings.fvp is not None:
        return fvp.launch(settings.fvp, limits, elf, arguments, work)
    return host.launch(elf, arguments, target.variant(firmware.variant).environment)


def _place(
    work: Path, program: Path, sets: Sequence[Sequence[Path]], files: Mapping[str, bytes]
) -> frozenset[str]:
    """Fill the guest's directory with copies: the guest may write to what it finds there."""
    work.mkdir(parents=True)
    copies = {_program_name(program): program}
    for number, paths in enumerate(sets):
        copies.update({f"s{number}i{index}.bin": path for index, path in enumerate(paths)})
    for name, source in copies.items():
        shutil.copyfile(source, work / name)
    for name, content in files.items():
        (work / name).write_bytes(content)
    return frozenset({*copies, *files})


def _environment() -> dict[str, str]:
    """The child's whole environment, but for what its simulator adds."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}


def _status(confined: bool, ended: Ended) -> tuple[int | None, int | None]:
    """Exit status and signal. Bubblewrap turns a signal n of what it runs into status 128+n."""
    if confined and ended.status is not None and 128 < ended.status <= 128 + 64:
        return None, ended.status - 128
    return ended.status, ended.signal


def _check_walls(confined: bool, status: int | None, console: Path) -> None:
    """Bubblewrap says why it did not start the program; that is no run at all."""
    if not confined or status != 1:
        return
    with console.open("rb") as file:
        said = file.read(500)
    if said.startswith(b"bwrap: "):
        message = said.decode("utf-8", "replace").splitlines()[0]
        raise InfraError(f"the simulator could not be confined: {message}", console=str(console))


def _left(work: Path, placed: frozenset[str]) -> tuple[LeftFile, ...]:
    found = []
    for folder, _, names in os.walk(work):
        for name in names:
            path = Path(folder) / name
            relative = str(path.relative_to(work))
            if relative not in placed and path.is_file() and not path.is_symlink():
                found.append(LeftFile(relative, path.stat().st_size))
    return tuple(sorted(found, key=lambda file: file.name))
