"""Data types for everything that a transcript can contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from harness.core.verdict import Word

_Entry = TypeVar("_Entry")


class Kind(Word):
    """The kind of a failure. The value is the ``cause.kind`` that a verdict shows; ``groups`` are
    the groups that the kind is in."""

    groups: tuple[str, ...]

    def __new__(cls, word: str, *groups: str) -> Kind:
        member = str.__new__(cls, word)
        member._value_, member.groups = word, groups
        return member

    HARD_FAULT = "hard_fault", "cpu"
    MPU_FAULT = "mpu_fault", "cpu"  # MemManage
    BUS_FAULT = "bus_fault", "cpu"
    USAGE_FAULT = "usage_fault", "cpu"
    SECURE_FAULT = "secure_fault", "cpu"
    DEBUG_FAULT = "debug_fault", "cpu"
    CPU_EXCEPTION = "cpu_exception", "cpu"  # the platform does not say which
    BOOT_PANIC = "boot_panic", "cpu"  # of a boot loader or of secure firmware
    CPU_LOCKUP = "cpu_lockup", "final"
    RESET_LOOP = "reset_loop", "final"
    STACK_OVERFLOW = "stack_overflow", "cpu"
    ZEPHYR_FATAL = "zephyr_fatal", "final"
    LINUX_OOPS = "linux_oops", "final"
    LINUX_PANIC = "linux_panic", "final"
    NO_ROOT = "no_root_file_system", "launch"
    OUT_OF_MEMORY = "out_of_memory", "final"  # Linux ended a process for it
    HUNG_TASK = "hung_task", "final"
    LOGIN_REFUSED = "login_refused", "launch"
    SSH_REFUSED = "ssh_refused", "launch"  # by a board with Linux
    OUTPUTS_LOST = "outputs_lost", "harness"  # they cannot be fetched from such a board
    GUEST_SILENT = "guest_silent", "harness", "final"  # it does not come to what was waited for
    DISK_FULL = "disk_full", "launch"
    BOARD_UNREACHABLE = "board_unreachable", "launch", "harness"  # or its power, or flashing
    BOARD_LOST = "board_lost", "launch", "harness"  # the serial line broke off
    BOARD_SILENT = "board_silent", "harness"
    BOARD_RESTARTED = "board_restarted", "harness"
    CONSOLE_DAMAGED = "console_damaged", "harness"
    FORMAT_UNKNOWN = "format_unknown"  # the C library does not know %zu
    WRONG_PROGRAM = "wrong_program", "harness"  # in the board's flash
    PROCESS_CRASH = "process_crash", "final"
    ASSERTION = "assertion_failed", "final"
    OPERATOR_MISSING = "operator_missing", "final"
    ALLOCATION_FAILED = "allocation_failed", "final"
    SCRATCH_MISMATCH = "scratch_mismatch"  # program and kernels do not mean the same kernels
    BACKEND_MISSING = "backend_missing", "final"
    NPU_ERROR = "npu_driver_error"
    BAD_PROGRAM = "bad_program"
    INPUT_REJECTED = "input_rejected"
    SEMIHOSTING_OFF = "semihosting_off", "final"
    FILE_NOT_OPENED = "file_not_opened"
    OUTPUT_NOT_WRITTEN = "output_not_written"
    BUNDLE_FAILED = "bundled_test_failed"
    TEST_FAILED = "test_failed"  # of a test framework, or of a sample that checks itself
    RUNNER_ERROR = "runner_error"
    LIBRARY_MISSING = "library_missing", "launch"
    EXECSTACK = "executable_stack", "launch"
    HOST_LIMITS = "host_limits", "launch"
    LICENCE = "licence", "launch"
    EULA = "eula", "launch"
    SIMULATOR_ERROR = "simulator_error", "launch"
    IMAGE_NOT_LOADED = "image_not_loaded"  # only ever a suspect: secure aliases report it, too
    EXIT_STATUS = "exit_status"  # that the program itself says
    JOB_FAILED = "job_failed"  # only ever a suspect: a tool or a CI system says it


def _kinds(group: str) -> frozenset[Kind]:
    return frozenset(kind for kind in Kind if group in kind.groups)


# The simulator or what it boots did not work; says nothing about what was to be tested.
LAUNCH = _kinds("launch")
# Lines that begin with "hil: ": the harness writes them about a guest or a board that it drives.
HARNESS = _kinds("harness")
# A CPU's exception, with its registers where the platform prints them.
CPU_FAULTS = _kinds("cpu")
# Nothing worth waiting for follows one of these.
FINAL = LAUNCH | CPU_FAULTS | _kinds("final")


class Stage(Word):
    """How far a run got, in the order things happen."""

    BOOTED = "booted"
    LOGIN = "login"
    SHELL = "shell"
    RUNNER = "runner_started"
    PROGRAM = "program_loaded"
    METHOD = "method_loaded"
    INPUTS = "inputs_prepared"
    EXECUTING = "executing"
    EXECUTED = "executed"
    OUTPUT = "output_written"
    COMPLETE = "complete"
    ENDED = "ended"  # a program said so that is not, or need not be, the runner


# The runner, or the program around it, has done its work.
ENDS = (Stage.COMPLETE, Stage.ENDED)


class Item(Word):
    """What else a row of ``patterns.yaml`` can mean: a figure, a printed output, a prefix."""

    NOISE = "noise"
    # who writes the line
    RUNNER = "runner"
    HOST = "host"
    DRIVER = "driver"
    ZEPHYR = "zephyr"
    # figures
    METRIC = "metric"
    TICKS = "ticks"
    CYCLES = "cycles"
    OP_TICKS = "op_ticks"
    BUILD_ID = "build_id"
    COUNTER = "counter"
    BUNDLE_PASS = "bundle_pass"
    OUTPUT_FILE = "output_file"
    OUTPUT_COUNT = "output_count"
    VERSION = "version"
    # outputs as text
    PRINTED_ELEMENT = "printed_element"  # in a runner's message
    ELEMENT = "element"
    NO_TENSOR = "no_tensor"
    TENSOR = "tensor"
    SCRIPT = "script"
    FILE = "file"


class Doubt(Word):
    """When a line that looks like a failure does not count, and may only explain a bad end."""

    ALWAYS = "always"
    SUCCESS = "success"  # the run goes on and succeeds


@dataclass(frozen=True)
class Event:
    """Something that went wrong, on line ``line`` (from 1) of the transcript."""

    kind: Kind
    line: int
    text: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    stage: Stage
    line: int
    text: str


@dataclass(frozen=True)
class OpTicks:
    """Ticks that one instruction of the program took in one input set."""

    input_set: int
    instruction: int
    operator: str
    ticks: int


@dataclass(frozen=True)
class Tensor:
    """An output printed as text, of its last inference.

    ``dtype`` is "float", "int", "char", "bool" or "" when the runner does not say it; ``sizes``
    only where it says them. ``whole`` is False when an element is missing or cannot be read.
    ``only_nan``: there are elements, and no number among them.
    """

    index: int
    dtype: str
    elements: int
    line: int
    whole: bool
    only_nan: bool
    sizes: tuple[int, ...] | None = None


class StopReason(Word):
    """Why a model says it stopped. Limits are of the model's own."""

    WALL_LIMIT = "wall_limit"
    SIMULATED_LIMIT = "simulated_limit"
    CYCLE_LIMIT = "cycle_limit"
    STOPPED = "stopped"  # by the user, or by something the guest did

    @property
    def is_limit(self) -> bool:
        return self is not StopReason.STOPPED


@dataclass(frozen=True)
class SimulatorStop:
    """The line in which a model says that it stopped."""

    reason: StopReason
    line: int
    text: str


@dataclass(frozen=True)
class Stray:
    """A line after an end marker that matches no row of the table."""

    line: int
    text: str


@dataclass(frozen=True)
class Observation:
    """Everything parsed from the console of one process, or of several processes of one run.

    ``suspects`` are a cause only if nothing better explains a bad end. ``completed``: for each
    process the line of its end marker. ``ended_line``: the last line where the program, not a
    runner, reported that it ended well. It never makes a run of the harness pass.
    """

    lines: int
    failures: tuple[Event, ...]
    metrics: dict[str, int]
    op_ticks: tuple[OpTicks, ...] = ()
    build_id: str | None = None
    completed: tuple[int | None, ...] = (None,)
    last_line: str = ""
    suspects: tuple[Event, ...] = ()
    failures_dropped: int = 0  # beyond the number that is kept
    progress: tuple[Progress, ...] = ()
    pmu: dict[str, int] = field(default_factory=dict)
    tensors: tuple[Tensor, ...] = ()
    output_files: tuple[str, ...] = ()
    stop: SimulatorStop | None = None
    bundle_lines: tuple[int, ...] = ()  # of "Test_result: PASS"
    runner_line: int | None = None  # the first line of a runner
    guest_line: int | None = None  # the first line that no simulator writes, but its guest
    versions: dict[str, str] = field(default_factory=dict)  # what the console says ran
    cut: bool = False  # the last line has no end
    ended_line: int | None = None
    output_count: int | None = None  # how many outputs the runner last said that it has
    strays: tuple[Stray, ...] = ()  # the first of them
    strays_settled: bool = True  # after the last of them a job reports that it ended well

    @property
    def complete_line(self) -> int | None:
        """The last end marker; None unless every process has said its own."""
        return None if None in self.completed or not self.completed else self.completed[-1]

    @property
    def first_ticks(self) -> tuple[OpTicks, ...]:
        """The ticks of the first input set."""
        return tuple(each for each in self.op_ticks if each.input_set == 0)

    @property
    def bundle_passes(self) -> int:
        return len(self.bundle_lines)

    @property
    def over(self) -> bool:
        """Whether the guest reported its end; output of a model after that does not mean a hang."""
        return self.complete_line is not None or self.ended_line is not None


def merge_observations(processes: Sequence[Observation]) -> Observation:
    """One Observation of several processes, in order.

    The last process decides how the run ended: had an earlier one failed, there would be no later
    one. A figure that several print is the largest. Raises ValueError for no process.
    """
    if not processes:
        raise ValueError("a run has at least one process")
    last = processes[-1]
    build_ids = {process.build_id for process in processes}
    metrics: dict[str, int] = {}
    for name, value in chain.from_iterable(p.metrics.items() for p in processes):
        metrics[name] = max(value, metrics.get(name, value))
    return replace(
        last,
        failures=_joined(p.failures for p in processes),
        metrics=metrics,
        op_ticks=_joined(p.op_ticks for p in processes),
        build_id=build_ids.pop() if len(build_ids) == 1 else None,
        completed=_joined(p.completed for p in processes),
        failures_dropped=sum(p.failures_dropped for p in processes),
        progress=_joined(p.progress for p in processes),
        tensors=_joined(p.tensors for p in processes),
        output_files=_joined(p.output_files for p in processes),
        stop=_stop(processes),
        bundle_lines=_joined(p.bundle_lines for p in processes),
    )


def _joined(parts: Iterable[tuple[_Entry, ...]]) -> tuple[_Entry, ...]:
    return tuple(chain.from_iterable(parts))


def _stop(processes: Sequence[Observation]) -> SimulatorStop | None:
    """The stop of the first process that a limit of the model ended early; else of the last."""
    early = (p.stop for p in processes if p.complete_line is None and p.stop is not None)
    return next((stop for stop in early if stop.reason.is_limit), processes[-1].stop)
