"""What the host does for the program beside QEMU: its NPU (harness/npu), its SYS_HEAPINFO.

The bundled runner built with HIL_ETHOSU_DRIVER=doorbell reaches the NPU through two FIFOs in its
directory and shares its DDR. Any other program that contains ethos-u-core-driver, or asks for its
heap, is served through QEMU's debugger interface (harness/sim/gdbstub).
"""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.npu.doorbell import (
    ANSWER_FIFO,
    REQUEST_FIFO,
    Identity,
    Run,
    SharedMemory,
    serving,
)
from harness.npu.npu_process import NpuProcess
from harness.sim.gdbstub.driver import GuestMemory, GuestStuck
from harness.sim.gdbstub.hooks import (
    ConsoleInjector,
    DrivenNpu,
    GuestEnd,
    StubSocket,
    serving_hooks,
)
from harness.sim.gdbstub.program import HeapInfo, Program
from harness.suites.standin import StandinError
from harness.suites.standin.machine import DDR


@dataclass(frozen=True)
class NpuSettings:
    product: str  # u55, u65, u85
    macs: int


@dataclass(frozen=True)
class HostServices:
    """Words for QEMU's command line and descriptors for it to inherit. ``guest_end``: how the
    program ended, when it is served by gdbstub hooks."""

    words: tuple[str, ...] = ()
    machine: str = ""  # more properties of the machine
    descriptors: tuple[int, ...] = ()
    handed_over: tuple[socket.socket, ...] = ()  # closed here as soon as QEMU has them
    guest_end: GuestEnd | None = None


@contextmanager
def host_services(
    program: Program, heap: HeapInfo | None, settings: NpuSettings, cwd: Path, read_end: int
) -> Iterator[HostServices]:
    """Serves whatever ``program`` needs while the block runs.

    ``heap`` is None without semihosting. ``read_end``: the reading end of QEMU's console pipe.
    """
    with ExitStack() as stack:
        services, npu, process = HostServices(), None, None
        if program.doorbell or program.functions:
            memory, services = stack.enter_context(_shared_memory())
            process = stack.enter_context(NpuProcess(settings.product, settings.macs, memory))
            if program.doorbell:
                stack.enter_context(_doorbell(cwd, memory, settings, process))
            else:
                shared = partial(GuestMemory, shared=memory, origin=DDR.origin, size=DDR.size)
                npu = DrivenNpu(_identity(settings), process, shared)
        if npu is not None or (heap is not None and program.heap_calls):
            hooked = _served_by_hooks(services, program, heap, npu, read_end)
            services = stack.enter_context(hooked)
        if process is not None:
            stack.callback(process.stop)  # before the others end: they may wait for a job
        yield services


def npu_driver(program: Program) -> str:
    """How the program reaches an NPU: "doorbell", "driver" (ethos-u-core-driver), or "": it does
    not."""
    if program.doorbell:
        return "doorbell"
    return "driver" if program.functions else ""


@contextmanager
def _doorbell(cwd: Path, memory: SharedMemory, settings: NpuSettings, run: Run) -> Iterator[None]:
    _remove_stale(cwd)
    with serving(cwd, memory, _identity(settings), run):
        yield


def _remove_stale(cwd: Path) -> None:
    """Removes the FIFOs of a run that was killed."""
    for path in (cwd / REQUEST_FIFO, cwd / ANSWER_FIFO):
        with suppress(FileNotFoundError):
            if not stat.S_ISFIFO(path.lstat().st_mode):
                raise StandinError(f"{path} exists and is not a FIFO; the NPU needs this name")
            path.unlink()


@contextmanager
def _served_by_hooks(
    services: HostServices,
    program: Program,
    heap: HeapInfo | None,
    npu: DrivenNpu | None,
    read_end: int,
) -> Iterator[HostServices]:
    line, injector = StubSocket(), ConsoleInjector()
    injector.connect(read_end)
    try:
        with serving_hooks(line, program, heap, npu, injector) as guest_end:
            yield HostServices(
                words=(*services.words, *line.words),
                machine=services.machine,
                descriptors=(*services.descriptors, line.far.fileno()),
                handed_over=(line.far,),
                guest_end=guest_end,
            )
    except GuestStuck as error:
        raise StandinError(str(error)) from error
    finally:
        injector.close()


@contextmanager
def _shared_memory() -> Iterator[tuple[SharedMemory, HostServices]]:
    """The guest's DDR as anonymous memory: nothing is left behind, however this process ends."""
    with SharedMemory(DDR.size, DDR.origin) as memory:
        backend = f"memory-backend-file,id=ddr,size={DDR.size},share=on"
        yield (
            memory,
            HostServices(
                words=("-object", f"{backend},mem-path={memory.path}"),
                machine=",memory-backend=ddr",
                descriptors=(memory.descriptor,),
            ),
        )


def _identity(settings: NpuSettings) -> Identity:
    return Identity.of(settings.product, settings.macs)
