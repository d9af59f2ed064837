"""What the stand-in does for a program beside QEMU: its NPU (harness/ethosu), its SYS_HEAPINFO.

A runner of ours built with HIL_ETHOSU_DRIVER=doorbell rings through two FIFOs in its directory
and shares its DDR. Any other program that has ethos-u-core-driver in it, or asks for its heap, is
attended through QEMU's debugger interface (harness/attend).
"""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.attend.aside import Aside
from harness.attend.attendance import WORDS, Attendance, Npu, Pair, attending
from harness.attend.driver import GuestStuck
from harness.attend.guest import GuestMemory
from harness.attend.heap import HeapInfo
from harness.attend.program import Program
from harness.formats.cop import CONFIG_WORDS, ID_WORDS
from harness.standin.failure import StandinError
from harness.standin.machine import DDR

if TYPE_CHECKING:
    from harness.ethosu.doorbell import Identity, Run, SharedMemory
    from harness.ethosu.npu_process import NpuProcess


@dataclass(frozen=True)
class NpuSettings:
    product: str  # u55, u65, u85
    macs: int
    packages: Path | None  # where numpy is, when Python does not look there by itself
    forked: bool = False  # the model is loaded in this process already


@dataclass(frozen=True)
class Attachment:
    """What QEMU needs: words for its command line and descriptors to inherit. ``attendance`` is
    there when the program is attended."""

    words: tuple[str, ...] = ()
    machine: str = ""  # more properties of the machine
    descriptors: tuple[int, ...] = ()
    handed_over: tuple[socket.socket, ...] = ()  # to be closed here once QEMU has them
    attendance: Attendance | None = None


@contextmanager
def attached(
    program: Program, heap: HeapInfo | None, settings: NpuSettings, cwd: Path, read_end: int
) -> Iterator[Attachment]:
    """All that ``program`` asks for while the block runs; one that asks for nothing gets nothing.

    ``heap`` is None without semihosting. ``read_end`` is of the pipe that QEMU writes to.
    """
    with ExitStack() as stack:
        attachment, npu, process = Attachment(), None, None
        if program.doorbell or program.functions:
            memory, attachment = stack.enter_context(_shared_memory())
            process = stack.enter_context(_model(settings, memory, later=not program.doorbell))
            if program.doorbell:
                stack.enter_context(_doorbell(cwd, memory, settings, process))
            else:
                shared = partial(GuestMemory, shared=memory, origin=DDR.origin, size=DDR.size)
                npu = Npu(_identity(settings), process, shared)
        if npu is not None or (heap is not None and program.heap_calls):
            attended = _attended(attachment, program, heap, npu, read_end)
            attachment = stack.enter_context(attended)
        if process is not None:
            stack.callback(process.stop)  # first, so that nobody above waits for a job
        yield attachment


def npu_driver(program: Program) -> str:
    """How the program reaches an NPU: "doorbell", "driver" (ethos-u-core-driver), or not: ""."""
    if program.doorbell:
        return "doorbell"
    return "driver" if program.functions else ""


@contextmanager
def _doorbell(cwd: Path, memory: SharedMemory, settings: NpuSettings, run: Run) -> Iterator[None]:
    from harness.ethosu.doorbell import serving

    _remove_stale(cwd)
    with serving(cwd, memory, _identity(settings), run):
        yield


def _remove_stale(cwd: Path) -> None:
    """FIFOs that a killed run has left."""
    from harness.ethosu.doorbell import ANSWER_FIFO, REQUEST_FIFO

    for path in (cwd / REQUEST_FIFO, cwd / ANSWER_FIFO):
        with suppress(FileNotFoundError):
            if not stat.S_ISFIFO(path.lstat().st_mode):
                raise StandinError(f"{path} exists and is not a FIFO; the NPU needs its place")
            path.unlink()


@contextmanager
def _attended(
    attachment: Attachment,
    program: Program,
    heap: HeapInfo | None,
    npu: Npu | None,
    read_end: int,
) -> Iterator[Attachment]:
    line, aside = Pair(), Aside()
    aside.attach(read_end)
    try:
        with attending(line, program, heap, npu, aside) as attendance:
            yield Attachment(
                words=(
                    *attachment.words,
                    *("-chardev", f"socket,id=gdb,fd={line.far.fileno()}", *WORDS),
                ),
                machine=attachment.machine,
                descriptors=(*attachment.descriptors, line.far.fileno()),
                handed_over=(line.far,),
                attendance=attendance,
            )
    except GuestStuck as error:
        raise StandinError(str(error)) from error
    finally:
        aside.close()


@contextmanager
def _shared_memory() -> Iterator[tuple[SharedMemory, Attachment]]:
    """The guest's DDR as memory without a name: nothing is left behind, however we end."""
    from harness.ethosu.doorbell import SharedMemory

    with SharedMemory(DDR.size, DDR.origin) as memory:
        backend = f"memory-backend-file,id=ddr,size={DDR.size},share=on"
        yield (
            memory,
            Attachment(
                words=("-object", f"{backend},mem-path={memory.path}"),
                machine=",memory-backend=ddr",
                descriptors=(memory.descriptor,),
            ),
        )


def _identity(settings: NpuSettings) -> Identity:
    from harness.ethosu.doorbell import Identity

    return Identity(CONFIG_WORDS[settings.product, settings.macs], ID_WORDS[settings.product])


def _model(settings: NpuSettings, memory: SharedMemory, *, later: bool) -> NpuProcess:
    """``later``: many a program with a driver has no job for it."""
    from harness.ethosu.npu_process import NpuProcess

    packages = () if settings.packages is None else (str(settings.packages),)
    return NpuProcess(
        settings.product, settings.macs, memory, packages, later=later, forked=settings.forked
    )
