"""The stand-in's command: help and lists, or one simulation, and its exit status.

The exit status follows the models, which end with 0 whatever the program's status is. The
program's status is passed on only when its directory has the file ``:semihosting-features`` with
SH_EXT_EXIT_EXTENDED in it (Arm semihosting specification; the models lack that pseudo-file, newlib
looks for it). A failure of QEMU itself, and a lock-up of the core, are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from harness.core.errors import HarnessError
from harness.sim.gdbstub.program import HeapInfo
from harness.suites.standin import OWN_FAULT, StandinError, machine
from harness.suites.standin.command_line import HELP, Model, Request, Settings, load_model, parse
from harness.suites.standin.host_services import (
    HostServices,
    NpuSettings,
    host_services,
    npu_driver,
)
from harness.suites.standin.machine import Elf, read_elf
from harness.suites.standin.record import RECORD, Recorder, mark_refused, write_all
from harness.suites.standin.session import (
    UARTS,
    Channels,
    QemuEnding,
    run,
    uarts_of,
)
from harness.system.confine import Confinement, NotConfined, confined, ending_signal, required
from harness.system.packages import how_to_get
from harness.system.quota import QUOTA

RUNNERS = "HIL_STANDIN_RUNNERS"  # a directory: applications elsewhere are refused
COMMAND_LINE_LIMIT = 256
FEATURES_FILE = ":semihosting-features"
_STOPPED = "\nInfo: /OSCI/SystemC: Simulation stopped by user.\n"
_STOPPING = "\nInfo: Simulation is stopping. Reason: {} has been exceeded.\n"
_LIMITED = {
    "--timelimit": "CPU time",  # the models' name for both
    "--cpulimit": "CPU time",
    "--simlimit": "Simulated time",
    "--cyclelimit": "Cycle limit",
}
_QEMU_ERROR = re.compile(rb"^(?:bwrap|qemu-system-arm|setpriv|setsid|qemu): .*", re.M)


def main(name: str, argv: Sequence[str], packages: str) -> int:
    """The exit status. ``packages``: the folder with numpy, which Python would not find."""
    sys.path.append(packages)
    try:
        model = load_model(name)
        request = parse(argv, model.cpu)
        if "--help" in request.flags:
            _say(f"Usage: {name} [OPTION]... [APPLICATION]\n{HELP}")
            return 0
        if "--version" in request.flags:
            _say(_version(model))
            return 0
        settings = Settings(model, request.parameters)
        if "--list-params" in request.flags:
            return _list_parameters(model, request.output)
        given = NpuSettings(model.npu_product, settings.macs)
        return _simulate(model, argv, request, settings, given)
    except (StandinError, HarnessError) as error:
        mark_refused()
        hint = error.hint if isinstance(error, HarnessError) else None
        print(f"Error: {name}: {error}" + (f"; {hint}" if hint else ""), file=sys.stderr)
        return OWN_FAULT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OWN_FAULT
    except Exception as error:  # the boundary of this command
        mark_refused()
        from harness.system.boundary import (  # a suite starts it often
            Unforeseen,
            as_harness_error,
            traceback_of,
        )

        failure = as_harness_error(error)
        if isinstance(failure, Unforeseen):
            print(traceback_of(error), end="", file=sys.stderr)
        print(f"Error: {name}: {failure.message}", file=sys.stderr)
        return OWN_FAULT


def _version(model: Model) -> str:
    return (
        f"Stand-in for {model.name} on top of QEMU {_qemu_version()} (machine mps3-an547, "
        f"Cortex-M55) and a functional model of the {model.npu_name}.\n"
        "This is not an Arm model: it has its command line and nothing of its inside.\n"
    )


def _qemu_version() -> str:
    output = subprocess.run(
        [_qemu_executable(), "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    version = re.search(r"version (\S+)", output)
    return version[1] if version else "of an unknown version"


def _list_parameters(model: Model, output: Path | None) -> int:
    text = "".join(f"{parameter.listed()}\n" for parameter in model.parameters.values())
    if output is None:
        _say(text)
        return 0
    try:
        output.write_text(text)
    except OSError as error:
        raise StandinError(f"cannot write {output}: {error.strerror}") from error
    return 0


def _say(text: str) -> None:
    print(text, end="", flush=True)


def _simulate(
    model: Model, words: Sequence[str], request: Request, settings: Settings, npu: NpuSettings
) -> int:
    """Runs the program to its end and passes on everything it writes. Returns the exit status."""
    elf = _application(model, request, settings)
    for data in request.data:
        machine.check_data(data)
    cwd = _directory(model, settings)
    _warn(model, request, settings, elf)
    record_in = os.environ.get(RECORD)
    recorder = Recorder(Path(record_in), cwd) if record_in else None
    console = _Console(recorder)
    uarts = uarts_of(model, settings, console.write)
    channels = Channels(console.write, uarts, with_clock=_needs_clock(request))
    try:
        heap = _heap(model, settings)
        with (
            _walls(request, elf, cwd) as walls,
            host_services(elf.program, heap, npu, cwd, channels.console.read) as services,
        ):
            argv = _argv(model, request, settings, elf, channels, services)
            ending = run(walls, argv, cwd, channels, services, request.limits)
    finally:
        for uart in uarts.values():
            uart.close()
        if recorder is not None:
            recorder.copy_files()
    guest_end = services.guest_end
    by_program = guest_end is not None and guest_end.status is not None
    status = _exit_status(model, ending, by_program, console, cwd)
    if "--quiet" not in request.flags:
        console.write(_stop_line(ending).encode())
    if "--stat" in request.flags:
        console.write(_statistics(model, ending).encode())
    if recorder is not None:
        recorder.finish(model.name, words, status)
    return status


def _needs_clock(request: Request) -> bool:
    """Whether something is measured in simulated time."""
    return bool({"--simlimit", "--cyclelimit"} & set(request.limits) or "--stat" in request.flags)


def _argv(
    model: Model,
    request: Request,
    settings: Settings,
    elf: Elf,
    channels: Channels,
    services: HostServices,
) -> list[str]:
    line = settings.text(f"{model.cpu}.semihosting-cmd_line")[:COMMAND_LINE_LIMIT]
    words = machine.argv(
        _qemu_executable(),
        elf.path,
        request.data,
        line if settings.flag(f"{model.cpu}.semihosting-enable") else None,
        [channels.uarts[n].write if n in channels.uarts else None for n in range(UARTS)],
        channels.clock.far_end.fileno() if channels.clock else None,
        services.machine,
    )
    return [*words, *services.words]


@contextmanager
def _walls(request: Request, elf: Elf, cwd: Path) -> Iterator[Confinement]:
    """Raises NotConfined where that is required."""
    qemu = Path(_qemu_executable())
    installed = qemu.resolve().parent.parent
    own = (installed / "lib", installed / "share" / "qemu")
    readable = [path.absolute() for path in (elf.path, *(d.file for d in request.data))]
    with confined(
        cwd,
        qemu,
        [*readable, *own],
        file_bytes=QUOTA.file_bytes,
        memory_bytes=machine.MEMORY_LIMIT,
    ) as walls:
        if walls.missing is not None:
            if required():
                raise NotConfined(walls.missing)
            _note(f"the guest is not wholly confined: {walls.missing}")
        yield walls


def _application(model: Model, request: Request, settings: Settings) -> Elf:
    if len(request.applications) != 1:
        raise StandinError(
            f"one application is needed (-a ELF), {len(request.applications)} were given"
        )
    _check_place(request.applications[0])
    elf = read_elf(request.applications[0])
    vectors = settings.number(model.vector_parameter)
    if objections := list(machine.objections(elf, vectors)):
        raise StandinError(
            f"{elf.path} cannot run on the stand-in (QEMU mps3-an547, a Corstone-300): "
            + "; ".join(dict.fromkeys(objections))
        )
    return elf


def _check_place(application: Path) -> None:
    """A suite looks for its runner in many places, and may find an old one somewhere."""
    only = os.environ.get(RUNNERS)
    if only and not application.resolve().is_relative_to(Path(only).resolve()):
        raise StandinError(
            f"{application} is not the runner under test: that is in {only}, and the suite found "
            "another one"
        )


def _heap(model: Model, settings: Settings) -> HeapInfo | None:
    """The model's answer to SYS_HEAPINFO; None without semihosting."""
    if not settings.flag(f"{model.cpu}.semihosting-enable"):
        return None
    names = (field.name for field in fields(HeapInfo))
    return HeapInfo(*(settings.number(f"{model.cpu}.semihosting-{name}") for name in names))


def _directory(model: Model, settings: Settings) -> Path:
    cwd = Path(settings.text(f"{model.cpu}.semihosting-cwd") or ".").absolute()
    if not cwd.is_dir():
        raise StandinError(f"{model.cpu}.semihosting-cwd={cwd} is not a directory")
    return cwd


def _warn(model: Model, request: Request, settings: Settings, elf: Elf) -> None:
    """Says on standard error where a run differs from one on the real model."""
    if "--quiet" in request.flags:
        return
    npu = f"{model.npu_name} with {settings.macs} MACs (results, not time)"
    how = {
        "": "which the program has no driver for",
        "doorbell": "reached by its doorbell",
        "driver": "its driver's functions done here",
    }[npu_driver(elf.program)]
    _note(f"not {model.name}: QEMU mps3-an547, Cortex-M55, and a model of an {npu}, {how}")
    if model.core != "Cortex-M55":
        _note(f"a Cortex-M55 in place of the {model.core}, and Corstone-300's devices")
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
    """Standard output, copied to the recorder."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.tail = b""  # its last bytes
        self._recorder = recorder

    def write(self, data: bytes) -> bool:
        """False: nothing on the console ends the simulation."""
        self.tail = (self.tail + data)[-8192:]
        write_all(1, data)
        if self._recorder is not None:
            self._recorder.write(data)
        return False


def _exit_status(
    model: Model, ending: QemuEnding, by_program: bool, console: _Console, cwd: Path
) -> int:
    """``by_program``: the debugger interface saw the program end with its status. Raises
    StandinError when QEMU failed."""
    if ending.reason != "exited" or ending.status == 0:
        return 0
    if not by_program:
        _check_qemu(model, ending.status, console)
    if not _passes_status_on(cwd):
        _note(
            f"the program ended with status {ending.status}; as with the model it is not passed "
            f"on, for there is no {FEATURES_FILE} in {cwd}"
        )
        return 0
    return ending.status


def _check_qemu(model: Model, status: int, console: _Console) -> None:
    """Raises StandinError when QEMU ended for a reason of its own, not of the program."""
    if b"qemu: fatal: Lockup" in console.tail:
        raise StandinError(
            f"{model.cpu}: the core locked up (a fault while handling a fault); a real model "
            "would stand still until its limit"
        )
    if errors := _QEMU_ERROR.findall(console.tail):
        raise StandinError(f"QEMU failed: {errors[-1].decode('utf-8', 'replace')}")
    if (number := ending_signal(status)) == signal.SIGXFSZ:
        raise StandinError(
            f"the program wrote more than {QUOTA.file_bytes >> 20} MiB to one file, and was ended"
        )
    if number is not None:
        raise StandinError(f"QEMU died (signal {number})")


def _passes_status_on(cwd: Path) -> bool:
    """Magic "SHFB", then a byte whose bit 0 says that SYS_EXIT_EXTENDED is there."""
    try:
        content = (cwd / FEATURES_FILE).read_bytes()
    except OSError:
        return False
    return content[:4] == b"SHFB" and len(content) > 4 and bool(content[4] & 1)


def _stop_line(ending: QemuEnding) -> str:
    if ending.reason in _LIMITED:
        return _STOPPING.format(_LIMITED[ending.reason])
    return _STOPPED


def _statistics(model: Model, ending: QemuEnding) -> str:
    simulated = ending.simulated_seconds
    rows = (
        ("Simulated time", "unknown" if simulated is None else f"at least {simulated:.2f}s"),
        ("Wall time", f"{ending.wall_seconds:.6f}s"),
    )
    lines = "".join(f"{name:<40}: {value}\n" for name, value in rows)
    title = f"--- {model.name} (stand-in) statistics: "
    return f"\n{title:-<79}\n{lines}{'-' * 79}\n"


def _qemu_executable() -> str:
    path = shutil.which(machine.QEMU)
    if path is None:
        raise StandinError(f"{machine.QEMU} is not installed ({how_to_get('qemu-system-arm')})")
    return path
