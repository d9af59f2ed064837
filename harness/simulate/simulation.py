"""Firmware and a program with inputs -> Transcript, on the simulator that was chosen.

Layout of a run's directory::

    console.log    every byte that the simulator and the target wrote
    work/          the guest's current directory, the only place it can write to:
                   the program, inputs and outputs (guest_files.py has their names)

Our runner takes all input sets in one process. ExecuTorch's takes one, so there it is one process
after the other, in one directory and with one console, until one of them does not end well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from harness.attend.ticks import Steps
from harness.errors import UsageError
from harness.formats.damage import DamagedFile
from harness.formats.pte_cut import CuttableProgram
from harness.observe.processes import together
from harness.simulate.guest_directory import GuestDirectory
from harness.simulate.guest_files import input_name, output_base, program_name
from harness.simulate.launch import Job, Launch
from harness.simulate.one_process import ProcessRun, run_process
from harness.simulate.pick import Chosen
from harness.simulate.transcript import CONSOLE, WORK, NpuUse, Transcript
from harness.system.files import disk_errors
from harness.target.loading import global_factor

_ASIDE = "outputs"  # beside the guest's directory, while a run goes on


class _Firmware(Protocol):
    """What is needed of a Firmware."""

    @property
    def elf(self) -> Path: ...
    @property
    def key(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def one_set_per_process(self) -> bool: ...


class NoInputs(UsageError):
    """``program`` takes none, and ExecuTorch's runner does not start without."""

    def __init__(self, program: Path) -> None:
        super().__init__(
            f"{program.name} is to run without an input, and ExecuTorch's runner wants one",
            hint="give its inputs with -i, or run it with the bundled runner",
            path=program,
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
    on_output: Callable[[bytes], None] | None = None,
    require_confinement: bool | None = None,
) -> Transcript:
    """Run ``program`` once on each set of input files, as the firmware takes them.

    ``run_dir/work`` must not exist yet, so whatever is found in it was made by this run. A run
    that ends badly is a Transcript; InfraError is for a run that could not be made. The limits,
    which are of each process, are multiplied by ``limit_factor``; None takes
    ``$HIL_LIMIT_FACTOR``. With ``profile`` instructions are counted, by operator.
    ``require_confinement``: as in ``run_process``.
    """
    target, tool = chosen.target, chosen.require()
    limits = target.limits.scaled(global_factor() if limit_factor is None else limit_factor)
    work = run_dir.absolute() / WORK
    native = target.variant(firmware.variant).environment
    every = range(len(sets))
    batches: list[Sequence[int]] = [every]
    if firmware.one_set_per_process:
        if not (sets and all(sets)):
            raise NoInputs(program)
        batches = [(number,) for number in every]
    counts = [len(files) for files in sets]
    jobs = [
        Job(firmware.elf.absolute(), arguments, work, limits, native, steps)
        for numbers in batches
        for steps in [_steps(firmware, program, numbers, profile)]
        for arguments in [_arguments(firmware, program, counts, numbers, profile)]
    ]
    launches = [chosen.simulator.launch(target, tool, job) for job in jobs]
    started = datetime.now(timezone.utc)
    with disk_errors("preparing the run directory"):
        directory = GuestDirectory(work, run_dir / _ASIDE)
    processes: list[ProcessRun] = []
    for numbers, job, launch in zip(batches, jobs, launches, strict=True):
        with disk_errors("preparing the run directory"):
            _prepare(directory, program, sets, numbers, launch)
        after = processes[-1] if processes else None
        processes.append(
            run_process(
                chosen,
                launch,
                job,
                run_dir / CONSOLE,
                after=after,
                on_output=on_output,
                require_confinement=require_confinement,
            )
        )
        if not processes[-1].ended_well:
            break
        with disk_errors("keeping outputs"):
            for number in numbers if len(batches) > 1 else ():
                directory.keep_outputs(number)
    last = processes[-1]
    with disk_errors("keeping outputs"):
        directory.put_back()
        left = directory.left()
        if last.excess is not None:
            directory.discard(left)
    return Transcript(
        run_dir=run_dir,
        target=target.name,
        variant=firmware.variant,
        build_key=firmware.key,
        simulator=chosen.name,
        native=chosen.simulator.native,
        version=tool.version,
        arguments=last.job.arguments,
        argv=last.argv,
        prefix=last.walls.prefix,
        environment=last.environment,
        confined=all(process.walls.confined for process in processes),
        unconfined_reason=last.walls.missing,
        licence=last.launch.licence,
        stop=last.stop,
        excess=last.excess,
        exit_status=last.exit_status,
        signal=last.signal,
        seconds=sum(process.ended.wall_seconds for process in processes),
        started=started.isoformat(timespec="milliseconds"),
        ended=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        console_bytes=last.end,
        console_times=_times(processes),
        console_complete=last.ended.complete,
        outputs=tuple(map(output_base, every)),
        files=left,
        cpu=last.cpu,
        npu=_npu(processes),
        stands_in=last.launch.stands_in,
        starts=tuple(process.start for process in processes),
        observation=together([process.observation for process in processes]),
    )


def _steps(
    firmware: _Firmware, program: Path, numbers: Sequence[int], profile: bool
) -> Steps | None:
    """Our own runner counts by itself."""
    if not profile or not firmware.one_set_per_process:
        return None
    try:
        instructions = CuttableProgram(program).instructions()
    except DamagedFile:
        return None  # the runner says more of it
    (number,) = numbers
    return Steps(number, tuple(one.operator.replace(" ", "_") or "move" for one in instructions))


def _arguments(
    firmware: _Firmware,
    program: Path,
    counts: Sequence[int],
    numbers: Sequence[int],
    profile: bool,
) -> tuple[str, ...]:
    if firmware.one_set_per_process:
        (number,) = numbers
        return executorch_arguments(program, number, counts[number])
    return runner_arguments(program, counts, profile)


def runner_arguments(
    program: Path, counts: Sequence[int], profile: bool = False
) -> tuple[str, ...]:
    """Our runner's command line; each ``-o`` starts the next input set."""
    words = ["executor_runner", "-m", program_name(program)]
    if profile:
        words.append("-p")
    for number, count in enumerate(counts):
        words += ["-o", output_base(number)]
        for index in range(count):
            words += ["-i", input_name(number, index)]
    return tuple(words)


def executorch_arguments(program: Path, number: int, count: int) -> tuple[str, ...]:
    """The command line of ExecuTorch's runner for input set ``number`` with ``count`` inputs.

    Source: ``main`` of examples/arm/executor_runner/arm_executor_runner.cpp, which wants at
    least seven words, so at least one input.
    """
    inputs = (word for index in range(count) for word in ("-i", input_name(number, index)))
    return ("executor_runner", "-m", program_name(program), *inputs, "-o", output_base(number))


def _prepare(
    directory: GuestDirectory,
    program: Path,
    sets: Sequence[Sequence[Path]],
    numbers: Sequence[int],
    launch: Launch,
) -> None:
    """What one process finds: nothing of it comes from an earlier one."""
    copies = {program_name(program): program}
    for number in numbers:
        copies.update({input_name(number, i): path for i, path in enumerate(sets[number])})
        directory.forget_outputs(number)
    directory.place(copies, launch.files)


def _times(processes: Sequence[ProcessRun]) -> tuple[tuple[int, float], ...]:
    """As of one process: bytes of the console, and seconds of running."""
    walls = [process.ended.wall_seconds for process in processes]
    before = accumulate([0.0, *walls[:-1]])
    return tuple(
        (process.start + size, since + seconds)
        for process, since in zip(processes, before, strict=True)
        for size, seconds in process.ended.times
    )


def _npu(processes: Sequence[ProcessRun]) -> NpuUse | None:
    """All jobs together; a stop is of the last process, and its job is counted over all."""
    uses = [process.npu for process in processes if process.npu is not None]
    if not uses:
        return None
    earlier = sum(use.jobs for use in uses[:-1])
    return uses[-1].after(earlier)
