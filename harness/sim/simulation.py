"""Runs a program with inputs on a firmware and the chosen simulator; returns a Transcript.

Layout of a run's directory::

    console.log    every byte that the simulator and the target wrote
    work/          the guest's current directory, the only place it can write to:
                   the program, inputs and outputs (run_files.py has their names)

Our runner takes all input sets in one process. ExecuTorch's takes one, so each set has its own
process, side by side, in its own directory (work/s0, work/s1, …). Their outputs end up in ``work``
and their consoles in one, as if they had run one after another until one of them did not end well.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from harness.config.target import Limits
from harness.core.errors import MalformedFile, UsageError
from harness.formats.pte import CuttableProgram
from harness.log.events import Observation
from harness.log.parser import LogParser, parse_processes
from harness.sim.gdbstub.host_calls import CountedOperators
from harness.sim.gdbstub.tensors import TensorFiles
from harness.sim.monitor import CpuState, cpu_state
from harness.sim.run_files import (
    CONSOLE,
    WORK,
    clear,
    discard,
    executorch_arguments,
    flag_arguments,
    input_name,
    make,
    move_outputs,
    output_base,
    program_name,
    rewritten,
    runner_arguments,
)
from harness.sim.simulator import Chosen, Companion, GuestJob, Launch
from harness.sim.simulator_process import GuestWatch, ProcessRun, run_process
from harness.sim.transcript import SimulatorFacts, Transcript
from harness.system.cancellation import cancelling
from harness.system.files import disk_errors, read_regular, sha256_of
from harness.system.process import Bounds, Stop
from harness.system.quota import Account, Excess, remove
from harness.system.settings import settings


class _Firmware(Protocol):
    """The part of a Firmware that a run needs."""

    @property
    def elf(self) -> Path: ...
    @property
    def root(self) -> Path | None: ...
    @property
    def one_set_per_process(self) -> bool: ...
    @property
    def takes_flags(self) -> bool: ...
    @property
    def program(self) -> str: ...


@dataclass(frozen=True)
class _Part:
    """The work of one process: the input sets ``numbers``. ``files``: its inputs, by name."""

    numbers: Sequence[int]
    files: Mapping[str, Path]
    job: GuestJob
    launch: Launch
    console: Path


@dataclass(frozen=True)
class _Done:
    """``placed``: the files that were copied into its directory."""

    part: _Part
    placed: frozenset[Path]
    process: ProcessRun
    observation: Observation
    cpu: CpuState | None
    rewritten: tuple[str, ...]

    @property
    def ended_well(self) -> bool:
        """Whether the next process may follow. Judging is another matter."""
        ending, observation, npu = self.process.ending, self.observation, self.process.npu
        return (
            (ending.stop, ending.exit_status, ending.signal) == (Stop.EXITED, 0, None)
            and ending.console_complete
            and not observation.failures
            and observation.complete_line is not None
            and (npu is None or npu.stop is None)
        )


def simulate(
    chosen: Chosen,
    firmware: _Firmware,
    program: Path,
    sets: Sequence[Sequence[Path]],
    *,
    run_dir: Path,
    profile: bool = False,
    limit_factor: float | None = None,
    require_confinement: bool | None = None,
) -> Transcript:
    """Run ``program`` once on each set of input files.

    ``run_dir/work`` must not exist yet, so that every file in it is made by this run. A run that
    ends badly is a Transcript; a run that could not start raises InfraError. The limits of each
    process are multiplied by ``limit_factor``; None: that of the settings. ``profile`` counts
    instructions, by operator. ``require_confinement``: as in ``run_process``."""
    limits = chosen.simulator.limits(chosen.target, program, len(sets))
    limits = limits.scaled(limit_factor or settings().limit_factor)
    parts = _parts(chosen, firmware, program, sets, run_dir.absolute(), profile, limits)
    run = partial(_run, chosen, require_confinement)
    done = [run(parts[0])] if len(parts) == 1 else _side_by_side(parts, run)
    if len(parts) > 1:
        with disk_errors("keeping outputs"):
            _put_together(parts, done, run_dir.absolute())
    return _transcript(chosen, run_dir, done)


def _run(chosen: Chosen, require_confinement: bool | None, part: _Part) -> _Done:
    job = part.job
    with disk_errors("preparing the run directory"):
        placed = make(job.work, part.files, part.launch.files)
        part.console.parent.mkdir(exist_ok=True)
    limits = job.limits
    bounds = Bounds(limits.host, limits.host if part.launch.own else limits.stall)
    with (
        chosen.simulator.beside(chosen.target, job) as companions,
        closing(_Watch(part, companions)) as watch,
    ):
        process = run_process(
            part.launch, job.work, part.console, bounds, watch, require_confinement
        )
    with disk_errors("reading what the guest left"):
        changed = rewritten(job.work, part.files)
    return _Done(part, placed, process, watch.parser.finish(), watch.cpu, changed)


class _Watch(GuestWatch):
    """Parses the output: ends the run at a fatal line, and reads the CPU's state at a limit."""

    def __init__(self, part: _Part, companions: Sequence[Companion]) -> None:
        self.parser = LogParser()
        super().__init__(part.launch, companions, self.parser.feed)
        self.cpu: CpuState | None = None
        self._elf = part.job.elf
        self._most_silent = part.job.limits.instructions
        self._heard_at = self._silent = 0  # instructions
        self._account = Account(part.job.work)

    def fatal(self) -> bool:
        return self.parser.final_failure

    def excess(self, processes: Iterable[int] = ()) -> Excess | None:
        return self._account.excess(processes)

    def spins(self, began: bool) -> bool:
        executed = self.monitor.instructions() if self.monitor is not None else 0
        if began:
            self._heard_at = executed
        self._silent = executed - self._heard_at
        return self._silent > self._most_silent

    def before_kill(self, stop: Stop) -> None:
        if self.monitor is not None and stop is not Stop.FAULT:
            silent = self._silent if self._silent > self._most_silent else None
            self.cpu = cpu_state(self.monitor, silent)
            if self.cpu is not None and stop is Stop.STALL and silent is None:
                from harness.sim.zephyr_threads import waiting_threads  # pyelftools is slow

                threads = waiting_threads(self.monitor, self._elf)
                self.cpu = replace(self.cpu, threads=threads)


def _parts(
    chosen: Chosen,
    firmware: _Firmware,
    program: Path,
    sets: Sequence[Sequence[Path]],
    run_dir: Path,
    profile: bool,
    limits: Limits,
) -> list[_Part]:
    """Return the parts of a run. Raises UsageError for an ELF that the simulator cannot run.

    Also for one with another program compiled into it, and without an input that ExecuTorch's
    runner needs."""
    if firmware.program and firmware.program != sha256_of(program):
        raise UsageError(f"{firmware.elf} has another program in it than {program}", path=program)
    every = range(len(sets))
    batches: list[Sequence[int]] = [every]
    if firmware.one_set_per_process:
        if not sets or not (firmware.takes_flags or all(sets)):
            raise UsageError(
                f"{program.name} is to run without an input, and ExecuTorch's runner needs one",
                hint="give its inputs with -i, or run it with the bundled runner",
                path=program,
            )
        batches = [(number,) for number in every]
    parts = []
    for numbers in batches:
        below = "" if len(batches) == 1 else output_base(numbers[0])
        arguments, counted = _arguments(firmware, program, sets, numbers, profile)
        work, tensors = run_dir / WORK / below, None
        if firmware.program:
            (number,) = numbers
            inputs = tuple(input_name(number, i) for i in range(len(sets[number])))
            tensors = TensorFiles(work, inputs, output_base(number))
        job = GuestJob(
            firmware.elf.absolute(),
            arguments,
            work,
            limits,
            counted,
            None if firmware.root is None else firmware.root.absolute(),
            tensors,
        )
        launch = chosen.simulator.launch(chosen.target, chosen.require(), job)
        files = {input_name(n, i): path for n in numbers for i, path in enumerate(sets[n])}
        files[program_name(program)] = program
        parts.append(_Part(numbers, files, job, launch, run_dir / below / CONSOLE))
    return parts


def _side_by_side(parts: Sequence[_Part], run: Callable[[_Part], _Done]) -> list[_Done]:
    """Return results up to the first that does not end well; later ones never run."""
    done = []
    workers = min(len(parts), os.cpu_count() or 1)
    with ThreadPoolExecutor(workers, "process") as pool, cancelling(pool):
        for future in [pool.submit(run, part) for part in parts]:
            done.append(future.result())
            if not done[-1].ended_well:
                pool.shutdown(cancel_futures=True)
                break
    return done


def _put_together(parts: Sequence[_Part], done: Sequence[_Done], run_dir: Path) -> None:
    """Merge the processes into one console, and all outputs into ``work``.

    Drops the parts that ran although an earlier one did not end well; keeps all of the last one,
    for inspection."""
    with (run_dir / CONSOLE).open("wb") as console:
        for one in done:
            with one.part.console.open("rb") as said:
                shutil.copyfileobj(said, console)
            (number,) = one.part.numbers
            move_outputs(one.part.job.work, number, run_dir / WORK)
    for one in done[:-1]:
        clear(one.part.job.work, one.placed)
    for part in parts:
        shutil.rmtree(part.console.parent, ignore_errors=True)
    for part in parts[len(done) :]:
        remove(part.job.work)


def _transcript(chosen: Chosen, run_dir: Path, done: Sequence[_Done]) -> Transcript:
    processes = [one.process for one in done]
    last, ending = processes[-1], processes[-1].ending
    npus = [process.npu for process in processes if process.npu is not None]
    starts = (0, *accumulate(process.ended.output_bytes for process in processes))
    observation = done[-1].observation
    if len(processes) > 1:
        observation = parse_processes(read_regular(run_dir / CONSOLE), starts[:-1])
    if ending.excess is not None:
        with disk_errors("keeping outputs"):
            discard(run_dir.absolute() / WORK, frozenset().union(*(one.placed for one in done)))
    return Transcript(
        run_dir=run_dir,
        simulator=SimulatorFacts(
            name=chosen.name,
            version=chosen.require().version,
            confined=all(process.walls.confined for process in processes),
            unconfined_reason=last.walls.missing,
            argv=last.argv,
            environment=last.environment,
            eula=last.launch.licence,
        ),
        ending=replace(
            ending,
            seconds=sum(process.ended.wall_seconds for process in processes),
            native=chosen.simulator.native,
            console_bytes=starts[-1],
            rewritten=tuple(name for one in done for name in one.rewritten),
        ),
        console_times=_times(processes, starts),
        cpu=done[-1].cpu,
        # All jobs together; a stop is of the last process.
        npu=npus[-1].after(sum(use.jobs for use in npus[:-1])) if npus else None,
        stands_in=last.launch.stands_in,
        starts=starts[:-1],
        observation=observation,
    )


def _arguments(
    firmware: _Firmware,
    program: Path,
    sets: Sequence[Sequence[Path]],
    numbers: Sequence[int],
    profile: bool,
) -> tuple[tuple[str, ...], CountedOperators | None]:
    """Return the runner's command line, and what to count if it does not count itself."""
    if firmware.program:
        return (), None
    if not firmware.one_set_per_process:
        return runner_arguments(program, [*map(len, sets)], profile), None
    (number,) = numbers
    words = flag_arguments if firmware.takes_flags else executorch_arguments
    counted = None
    with suppress(MalformedFile):  # the runner says more of it
        if profile:
            steps = CuttableProgram(program).instructions()
            names = tuple(step.operator.replace(" ", "_") or "move" for step in steps)
            counted = CountedOperators(number, names)
    return words(program, number, len(sets[number])), counted


def _times(processes: Sequence[ProcessRun], starts: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """Bytes of the console and seconds of running, as if one process had run."""
    before = accumulate([0.0, *(process.ended.wall_seconds for process in processes)])
    return tuple(
        (start + size, since + seconds)
        for process, start, since in zip(processes, starts, before, strict=False)
        for size, seconds in process.ended.times
    )
