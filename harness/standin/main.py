"""The stand-in's command: what it asks for besides a simulation, one simulation, and what it says
to errors.

The exit status follows the models, which end with 0 whatever the program thought of its own
tests. The program's status is passed on only when its directory has the file
``:semihosting-features`` with SH_EXT_EXIT_EXTENDED in it (Arm semihosting specification; the
models lack that pseudo-file, newlib looks for it). QEMU's own failure, and a lock-up of the core,
are errors.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from harness.attend.heap import HeapInfo
from harness.errors import HarnessError
from harness.standin import machine
from harness.standin.attachment import Attachment, NpuSettings, attached, npu_driver
from harness.standin.elf import Elf, read_elf
from harness.standin.failure import OWN_FAULT, StandinError
from harness.standin.grammar import HELP, Request, parse
from harness.standin.parameters import Model, Settings, load_model
from harness.standin.record import RECORD, Record
from harness.standin.session import Clock, QemuEnding, Streams, run
from harness.standin.uart import UARTS, Uart, uart_settings, write_all
from harness.system.confine import Confinement, NotConfined, confined, ending_signal, required
from harness.system.packages import how_to_get
from harness.system.quota import QUOTA

RUNNERS = "HIL_STANDIN_RUNNERS"  # a directory: no application that lies elsewhere is run
COMMAND_LINE_LIMIT = 256
FEATURES_FILE = ":semihosting-features"
_STOPPED = "\nInfo: /OSCI/SystemC: Simulation stopped by user."
_STOPPING = "\nInfo: Simulation is stopping. Reason: {} has been exceeded."
_WHAT = {
    "--timelimit": "CPU time",  # the models' word for both
    "--cpulimit": "CPU time",
    "--simlimit": "Simulated time",
    "--cyclelimit": "Cycle limit",
}
_QEMU_SAID = re.compile(rb"^(?:bwrap|qemu-system-arm|setpriv|setsid|qemu): .*", re.M)


def main(
    name: str, argv: Sequence[str], packages: Path | None = None, *, forked: bool = False
) -> int:
    """The exit status. ``packages``: where numpy is, when Python would not find it. ``forked``: the
    NPU model is loaded here already, and has only to be forked."""
    if packages is not None and str(packages) not in sys.path:
        sys.path.append(str(packages))
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
        given = NpuSettings(model.npu_product, settings.macs, packages, forked)
        return _simulate(model, argv, request, settings, given)
    except (StandinError, HarnessError) as error:
        hint = error.hint if isinstance(error, HarnessError) else None
        print(f"Error: {name}: {error}" + (f"; {hint}" if hint else ""), file=sys.stderr)
        return OWN_FAULT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OWN_FAULT
    except Exception as error:  # the boundary of this face
        from harness.system.boundary import debugging, told, traceback_of  # a suite starts it often

        if debugging():
            print(traceback_of(error), end="", file=sys.stderr)
        print(f"Error: {name}: {told(error).message}", file=sys.stderr)
        return OWN_FAULT


def _version(model: Model) -> str:
    return (
        f"Stand-in for {model.name} on top of QEMU {_qemu_version()} (machine mps3-an547, "
        f"Cortex-M55) and a functional model of the {model.npu_name}.\n"
        "This is not an Arm model: it has its command line and nothing of its inside.\n"
    )


def _qemu_version() -> str:
    said = subprocess.run(
        [_qemu_executable(), "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of an unknown version"


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
    """Run it to its end, everything it writes passed on; the exit status."""
    elf = _application(model, request, settings)
    for data in request.data:
        machine.check_data(data)
    cwd = _directory(model, settings)
    _notes(model, request, settings, elf)
    wanted = os.environ.get(RECORD)
    record = Record(Path(wanted), cwd) if wanted else None
    console = _Console(record)
    given = list(uart_settings(model, settings))
    uarts = {one.number: Uart(one, console.take) for one in given}
    streams = Streams(os.pipe(), {number: os.pipe() for number in uarts})
    try:
        heap = _heap(model, settings)
        with (
            _walls(request, elf, cwd) as walls,
            attached(elf.program, heap, npu, cwd, streams.console[0]) as beside,
        ):
            simulated = {"--simlimit", "--cyclelimit"} & set(request.limits)
            clock = Clock() if simulated or "--stat" in request.flags else None
            argv = _argv(model, request, settings, elf, streams, clock, beside)
            outcome = run(
                walls, argv, cwd, streams, console.take, uarts, request.limits, clock, beside
            )
    finally:
        for uart in uarts.values():
            uart.close()
        if record is not None:
            record.keep()
    ended = None if beside.attendance is None else beside.attendance.status
    code = _verdict(model, outcome, ended, console, cwd)
    if "--quiet" not in request.flags:
        console.line(_stop_line(outcome))
    if "--stat" in request.flags:
        console.take(_statistics(model, outcome).encode())
    if record is not None:
        record.ended(model.name, words, code)
    return code


def _argv(
    model: Model,
    request: Request,
    settings: Settings,
    elf: Elf,
    streams: Streams,
    clock: Clock | None,
    beside: Attachment,
) -> list[str]:
    line = settings.text(f"{model.cpu}.semihosting-cmd_line")[:COMMAND_LINE_LIMIT]
    words = machine.argv(
        _qemu_executable(),
        elf.path,
        request.data,
        line if settings.flag(f"{model.cpu}.semihosting-enable") else None,
        [streams.uarts[n][1] if n in streams.uarts else None for n in range(UARTS)],
        clock.far_end.fileno() if clock else None,
        beside.machine,
    )
    return [*words, *beside.words]


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
        memory_bytes=machine.MOST_MEMORY,
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
    if found := list(machine.objections(elf, vectors)):
        raise StandinError(
            f"{elf.path} cannot run on the stand-in (QEMU mps3-an547, a Corstone-300): "
            + "; ".join(dict.fromkeys(found))
        )
    return elf


def _check_place(application: Path) -> None:
    """A suite looks for its runner in many places, and may find one that somebody left there."""
    only = os.environ.get(RUNNERS)
    if only and not application.resolve().is_relative_to(Path(only).resolve()):
        raise StandinError(
            f"{application} is not the runner under test: that is in {only}, and whoever asked for "
            "a simulation found another"
        )


def _heap(model: Model, settings: Settings) -> HeapInfo | None:
    """What the model answers to SYS_HEAPINFO; it answers nothing without semihosting."""
    if not settings.flag(f"{model.cpu}.semihosting-enable"):
        return None
    names = (field.name for field in fields(HeapInfo))
    return HeapInfo(*(settings.number(f"{model.cpu}.semihosting-{name}") for name in names))


def _directory(model: Model, settings: Settings) -> Path:
    cwd = Path(settings.text(f"{model.cpu}.semihosting-cwd") or ".").absolute()
    if not cwd.is_dir():
        raise StandinError(f"{model.cpu}.semihosting-cwd={cwd} is not a directory")
    return cwd


def _notes(model: Model, request: Request, settings: Settings, elf: Elf) -> None:
    """What a user of the real model would be surprised by, on standard error."""
    if "--quiet" in request.flags:
        return
    npu = f"{model.npu_name} with {settings.macs} MACs (results, not time)"
    how = {"": "which the program has no driver for", "doorbell": "reached by its doorbell",
           "driver": "its driver's functions done here"}[npu_driver(elf.program)]  # fmt: skip
    _note(f"not {model.name}: QEMU mps3-an547, Cortex-M55, and a model of an {npu}, {how}")
    if model.core != "Cortex-M55":
        _note(f"a Cortex-M55 in place of the {model.core}, and Corstone-300's devices")
    vectors = settings.number(model.vector_parameter)
    if machine.elsewhere(vectors):
        _note(
            f"the program has no vector table at 0x{vectors:08x}, where the model starts, but one "
            "at 0x00000000 (ITCM), where this machine does: it starts there"
        )
    for parameter in settings.ineffective():
        _note(f"{parameter.name} is {parameter.effect}")


def _note(text: str) -> None:
    print(f"stand-in: {text}", file=sys.stderr, flush=True)


class _Console:
    """Standard output, and a copy of it for whoever asked."""

    def __init__(self, record: Record | None) -> None:
        self.tail = b""
        self._sinks: list[Callable[[bytes], None]] = [lambda data: write_all(1, data)]
        if record is not None:
            self._sinks.append(record.take)

    def take(self, data: bytes) -> bool:
        """Nothing on the console ends the simulation."""
        self.tail = (self.tail + data)[-8192:]
        for sink in self._sinks:
            sink(data)
        return False

    def line(self, text: str) -> None:
        self.take(f"{text}\n".encode())


def _verdict(
    model: Model, outcome: QemuEnding, ended: int | None, console: _Console, cwd: Path
) -> int:
    """``ended``: the status that the program ended with, where QEMU was asked about it."""
    if outcome.reason != "exited" or outcome.status == 0:
        return 0
    if ended is None:
        _check_qemu(model, outcome.status, console)
    if not _passes_status_on(cwd):
        _note(
            f"the program ended with status {outcome.status}; as with the model it is not passed "
            f"on, for there is no {FEATURES_FILE} in {cwd}"
        )
        return 0
    return outcome.status


def _check_qemu(model: Model, status: int, console: _Console) -> None:
    """Raises StandinError when it was QEMU that ended, and not the program."""
    if b"qemu: fatal: Lockup" in console.tail:
        raise StandinError(
            f"{model.cpu}: the core locked up (a fault while handling a fault); a real model "
            "would stand still until its limit"
        )
    if said := _QEMU_SAID.findall(console.tail):
        raise StandinError(f"QEMU failed: {said[-1].decode('utf-8', 'replace')}")
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


def _stop_line(outcome: QemuEnding) -> str:
    if outcome.reason in _WHAT:
        return _STOPPING.format(_WHAT[outcome.reason])
    return _STOPPED


def _statistics(model: Model, outcome: QemuEnding) -> str:
    simulated = outcome.simulated_seconds
    rows = (
        ("Simulated time", "unknown" if simulated is None else f"at least {simulated:.2f}s"),
        ("Wall time", f"{outcome.wall_seconds:.6f}s"),
    )
    lines = "".join(f"{name:<40}: {value}\n" for name, value in rows)
    title = f"--- {model.name} (stand-in) statistics: "
    return f"\n{title:-<79}\n{lines}{'-' * 79}\n"


def _qemu_executable() -> str:
    path = shutil.which(machine.QEMU)
    if path is None:
        raise StandinError(f"{machine.QEMU} is not installed ({how_to_get('qemu-system-arm')})")
    return path
