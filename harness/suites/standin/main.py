"""The stand-in's command: help and lists, or one simulation, and its exit status.

The exit status follows the models, which end with 0 whatever the program's status is. The
program's status is passed on only when its directory has the file ``:semihosting-features`` with
SH_EXT_EXIT_EXTENDED in it (Arm semihosting specification; the models lack that pseudo-file, newlib
looks for it). A failure of QEMU itself, and a lock-up of the core, are errors.
"""

from __future__ import annotations

import math
import os
import re
import signal
import stat
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from threading import Lock

from harness.formats.elf import STT_FUNC
from harness.npu.doorbell import ANSWER_FIFO, REQUEST_FIFO
from harness.sim.companion import ModelledNpu, NpuRunner, served
from harness.sim.fvp import FEATURES_FILE
from harness.sim.gdbstub.host_calls import HeapInfo, HostCalls
from harness.sim.simulator import Companion, Launch, NpuResult
from harness.sim.simulator_process import ProcessRun, run_process
from harness.suites.standin import OWN_FAULT, StandinError, machine
from harness.suites.standin.command_line import FvpParameters, Model, Request, load_fvp_model, parse
from harness.suites.standin.machine import Application, read_application
from harness.suites.standin.record import RECORD, StandinRecorder, mark_refused, write_all
from harness.suites.standin.watch import ModelWatch, uarts_of
from harness.system import toolchain
from harness.system.confine import what_lacks
from harness.system.files import read_regular
from harness.system.process import Bounds, Stop
from harness.system.quota import QUOTA
from harness.system.unexpected import Unforeseen, as_harness_error, traceback_of

RUNNERS_VARIABLE = "HIL_STANDIN_RUNNERS"  # a directory: applications elsewhere are refused
COMMAND_LINE_LIMIT = 256
_STOPPED = "\nInfo: /OSCI/SystemC: Simulation stopped by user.\n"
_STOPPING = "\nInfo: Simulation is stopping. Reason: {} has been exceeded.\n"
_LIMITED = {
    "--timelimit": "CPU time",  # the models' name for both
    "--cpulimit": "CPU time",
    "--simlimit": "Simulated time",
    "--cyclelimit": "Cycle limit",
}
_QEMU_ERROR = re.compile(rb"^(?:bwrap|qemu-system-arm|setpriv|prlimit|sh|qemu): .*", re.M)


def main(name: str, argv: Sequence[str]) -> int:
    """Runs the command of the model ``name``. Returns the exit status."""
    if sys.stdin is None or stat.S_ISSOCK(os.fstat(0).st_mode):  # else another file may become 0
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        model = load_fvp_model(name)
        request = parse(argv, name, model.cpu)
        if "--version" in request.flags:
            _say(_version(model))
            return 0
        settings = FvpParameters(model, request.parameters)
        if "--list-params" in request.flags:
            return _list_parameters(model, request.output)
        return _simulate(model, argv, request, settings)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:  # the boundary of this command
        failure = as_harness_error(error)
        mark_refused(failure.message)
        hint = f"; {failure.hint}" if failure.hint else ""
        if isinstance(failure, Unforeseen):
            print(traceback_of(error), end="", file=sys.stderr)
        print(f"Error: {name}: {failure.message}{hint}", file=sys.stderr)
    return OWN_FAULT


def _version(model: Model) -> str:
    version = toolchain.require(machine.QEMU).version
    return (
        f"Stand-in for {model.name} on top of QEMU {version} (machine mps3-an547, "
        f"Cortex-M55) and a functional model of the {model.npu_name}.\n"
        "This is not an Arm model: it shares its command line, not its implementation.\n"
    )


def _list_parameters(model: Model, output: Path | None) -> int:
    text = "".join(f"{parameter.listed()}\n" for parameter in model.parameters.values())
    if output is None:
        _say(text)
    else:
        output.write_text(text)
    return 0


def _say(text: str) -> None:
    print(text, end="", flush=True)


def _simulate(model: Model, words: Sequence[str], request: Request, settings: FvpParameters) -> int:
    """Runs the program to its end and passes on everything it writes. Returns the exit status."""
    application = _application(model, request, settings)
    for data in request.data:
        machine.check_data(data)
    _check_npu_arguments(model, settings)
    cwd = _directory(model, settings)
    _warn(model, request, settings, application.calls)
    record_in = os.environ.get(RECORD)
    recorder = StandinRecorder(Path(record_in), cwd) if record_in else None
    console = _Console(recorder)
    launch = _launch(model, request, settings, application)
    process, timed = None, "--stat" in request.flags
    try:
        with (
            uarts_of(model, settings, console.write) as uarts,
            _companion(model, settings, application.calls, cwd) as (runner, beside),
            closing(
                ModelWatch(
                    launch,
                    (*uarts, *beside),
                    console.write,
                    request.limits,
                    timed=timed,
                    function_at=partial(_function_at, application),
                )
            ) as watch,
            suppress(KeyboardInterrupt),  # as with the models, an interrupt stops the simulation
        ):
            process = run_process(launch, cwd, Path(os.devnull), _bounds(request), watch)
    finally:
        if recorder is not None:
            recorder.copy_files()
    _check_service(runner)
    if watch.halted is not None:
        _note(
            f"the program stands still at {_function_at(application, watch.halted)} "
            f"(0x{watch.halted:08x}), a branch to itself; a real model would stand "
            "there until its limit"
        )
    status = 0 if process is None else _exit_status(model, process, console, cwd)
    if "--quiet" not in request.flags:
        exceeded = _exceeded(process, watch)
        line = _STOPPING.format(_LIMITED[exceeded]) if exceeded else _STOPPED
        console.write(line.encode())
    if timed and process is not None:
        simulated, wall = watch.simulated_seconds, process.ended.wall_seconds
        console.write(_statistics(model, simulated, wall).encode())
    if recorder is not None:
        recorder.finish(model.name, words, status)
    return status


def _companion(
    model: Model, settings: FvpParameters, calls: HostCalls, cwd: Path
) -> AbstractContextManager[tuple[NpuRunner, tuple[Companion, ...]]]:
    """The NPU's model if the program can reach it, and the host's answer to SYS_HEAPINFO."""
    npu, heap = None, _heap(model, settings)
    calls = replace(calls, heap_calls=()) if heap is None else replace(calls, heap=heap)
    if calls.doorbell:
        _remove_stale(cwd)
    if calls.doorbell or calls.functions:
        npu = ModelledNpu(model.npu_product, settings.macs, machine.DDR, machine.DDR_BYTES)
    return served(npu, calls, cwd)


def _function_at(application: Application, address: int) -> str:
    elf = application.elf
    functions = [s for s in elf.symbols if s.type == STT_FUNC and elf.address(s) <= address]
    return max(functions, key=elf.address).name if functions else "its code"


def _remove_stale(cwd: Path) -> None:
    for path in (cwd / REQUEST_FIFO, cwd / ANSWER_FIFO):
        if path.is_fifo():
            path.unlink()
        elif os.path.lexists(path):
            raise StandinError(f"{path} exists and is not a FIFO; the NPU needs this name")


def _launch(
    model: Model, request: Request, settings: FvpParameters, application: Application
) -> Launch:
    calls = application.calls
    line = settings.text(f"{model.cpu}.semihosting-cmd_line")[:COMMAND_LINE_LIMIT]
    qemu = toolchain.locate(machine.QEMU)
    installed = qemu.resolve().parent.parent
    cpu = request.limits.get("--cpulimit")
    return Launch(
        machine.argv(
            str(qemu),
            application.path,
            request.data,
            line if settings.flag(f"{model.cpu}.semihosting-enable") else None,
            shares_memory=calls.doorbell or bool(calls.functions),
        ),
        readable=(
            *(application.path, *(data.file for data in request.data)),
            *(installed / "lib", installed / "share" / "qemu"),
        ),
        input=0,  # what a script types: the guest reads it through semihosting
        has_monitor=True,
        memory_bytes=machine.MEMORY_LIMIT,
        cpu_seconds=None if cpu is None else max(1, math.ceil(cpu)),
    )


def _bounds(request: Request) -> Bounds:
    """The models' own limits; without a grace period when the watch sees the end."""
    return Bounds(
        host_seconds=request.limits.get("--timelimit", math.inf),
        stall_seconds=math.inf,
        output_bytes=sys.maxsize,
        line_bytes=sys.maxsize,
        grace_seconds=0,
    )


def _application(model: Model, request: Request, settings: FvpParameters) -> Application:
    if len(request.applications) != 1:
        raise StandinError(
            f"one application is needed (-a ELF), {len(request.applications)} were given"
        )
    _check_place(request.applications[0])
    application = read_application(request.applications[0])
    vectors = settings.number(model.vector_parameter)
    if objections := list(application.objections(vectors)):
        raise StandinError(
            f"{application.path} cannot run on the stand-in (QEMU mps3-an547, a Corstone-300): "
            + "; ".join(dict.fromkeys(objections))
        )
    return application


def _check_npu_arguments(model: Model, settings: FvpParameters) -> None:
    """Raises StandinError for a file that a script would look for and not find."""
    given = settings.text(f"{model.npu}.extra_args")
    if "--pmu-trace" in given:
        raise StandinError(
            f"{model.npu}.extra_args='{given}': there is no PMU trace, because the stand-in's NPU "
            "has no time",
            hint="leave --pmu-trace (--trace_file of run_fvp.sh) out, or run this on the FVP",
        )


def _check_place(application: Path) -> None:
    """A suite looks for its runner in many places, and may find an old one somewhere."""
    only = os.environ.get(RUNNERS_VARIABLE)
    if only and not application.resolve().is_relative_to(Path(only).resolve()):
        raise StandinError(
            f"{application} is not the runner under test: that is in {only}, and the suite found "
            "another one"
        )


def _heap(model: Model, settings: FvpParameters) -> HeapInfo | None:
    """The model's answer to SYS_HEAPINFO; None without semihosting."""
    if not settings.flag(f"{model.cpu}.semihosting-enable"):
        return None
    names = (field.name for field in fields(HeapInfo))
    return HeapInfo(*(settings.number(f"{model.cpu}.semihosting-{name}") for name in names))


def _directory(model: Model, settings: FvpParameters) -> Path:
    cwd = Path(settings.text(f"{model.cpu}.semihosting-cwd") or ".").absolute()
    if not cwd.is_dir():
        raise StandinError(f"{model.cpu}.semihosting-cwd={cwd} is not a directory")
    return cwd


def _warn(model: Model, request: Request, settings: FvpParameters, calls: HostCalls) -> None:
    """Notes on standard error in what a run differs from one on the real model."""
    if missing := what_lacks():
        _note(f"the guest is not wholly confined: {missing}")
    if "--quiet" in request.flags:
        return
    npu = f"{model.npu_name} with {settings.macs} MACs (results, not time)"
    how = "which the program has no driver for"
    if calls.doorbell:
        how = "reached by its doorbell"
    elif calls.functions:
        how = "with its driver's functions emulated"
    _note(f"not {model.name}: QEMU mps3-an547, Cortex-M55, and a model of an {npu}, {how}")
    if model.core != "Cortex-M55":
        _note(f"a Cortex-M55 instead of the {model.core}, and Corstone-300's devices")
    vectors = settings.number(model.vector_parameter)
    if not machine.starts_in_itcm(vectors):
        _note(
            f"the program has no vector table at 0x{vectors:08x}, where the model starts, but one "
            "at 0x00000000 (ITCM), where this machine does: it starts there"
        )
    for parameter in settings.ineffective():
        _note(f"{parameter.name} is {parameter.effect}")


def _note(text: str) -> None:
    print(f"stand-in: {text}", file=sys.stderr, flush=True)


class _Console:
    """Writes to standard output and to the recorder."""

    def __init__(self, recorder: StandinRecorder | None) -> None:
        self.tail = b""  # its last bytes
        self._lock = Lock()
        self._recorder = recorder

    def write(self, data: bytes) -> None:
        with self._lock:  # a UART has a thread of its own
            self.tail = (self.tail + data)[-8192:]
            write_all(1, data)
            if self._recorder is not None:
                self._recorder.write(data)


def _check_service(runner: NpuRunner) -> None:
    """Raises StandinError when the NPU model did not serve the program."""
    if runner.stuck:
        raise StandinError(runner.stuck)
    use = runner.use()
    if use is not None and use.stop is not None and use.stop.result is NpuResult.BROKEN:
        raise StandinError(use.stop.message)


def _exceeded(process: ProcessRun | None, watch: ModelWatch) -> str | None:
    """The limit that ended the run."""
    if process is not None and process.ending.stop is Stop.DEADLINE:
        return "--timelimit"
    if process is not None and process.ending.signal == signal.SIGXCPU:
        return "--cpulimit"
    return watch.exceeded


def _exit_status(model: Model, process: ProcessRun, console: _Console, cwd: Path) -> int:
    """Raises StandinError when QEMU failed."""
    ending = process.ending
    if ending.stop is Stop.OUTPUT_LIMIT:
        raise StandinError(
            f"the program wrote more than {QUOTA.file_bytes >> 20} MiB to one file, and was ended"
        )
    if process.guest_status is None and (ending.exit_status or ending.signal):
        _check_qemu(model, ending.signal, console)
    if not ending.exit_status:
        return 0
    if not _passes_status_on(cwd):
        _note(
            f"the program ended with status {ending.exit_status}; as with the model, it is not "
            f"passed on, because there is no {FEATURES_FILE} in {cwd}"
        )
        return 0
    return ending.exit_status


def _check_qemu(model: Model, number: int | None, console: _Console) -> None:
    """Raises StandinError when QEMU ended for a reason of its own, not of the program."""
    if b"qemu: fatal: Lockup" in console.tail:
        raise StandinError(
            f"{model.cpu}: the core locked up (a fault while handling a fault); a real model "
            "would hang until its limit"
        )
    if errors := _QEMU_ERROR.findall(console.tail):
        raise StandinError(f"QEMU failed: {errors[-1].decode('utf-8', 'replace')}")
    if number not in (None, signal.SIGXCPU):
        raise StandinError(f"QEMU died (signal {number})")


def _passes_status_on(cwd: Path) -> bool:
    """Whether the features file has SYS_EXIT_EXTENDED: magic "SHFB", then bit 0 of the next
    byte."""
    try:
        content = read_regular(cwd / FEATURES_FILE)
    except OSError:
        return False
    return content[:4] == b"SHFB" and len(content) > 4 and bool(content[4] & 1)


def _statistics(model: Model, simulated: float, wall: float) -> str:
    rows = (("Simulated time", f"at least {simulated:.2f}s"), ("Wall time", f"{wall:.6f}s"))
    lines = "".join(f"{name:<40}: {value}\n" for name, value in rows)
    title = f"--- {model.name} (stand-in) statistics: "
    return f"\n{title:-<79}\n{lines}{'-' * 79}\n"
