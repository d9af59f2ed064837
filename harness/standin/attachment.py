"""What the stand-in does for a program beside QEMU: its NPU (harness/ethosu), its SYS_HEAPINFO.

A runner of ours built with HIL_ETHOSU_DRIVER=doorbell rings through two FIFOs in its directory
and shares its DDR. Any other program that has ethos-u-core-driver in it, or asks for its heap, is
attended through QEMU's debugger interface (harness/attend).
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
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


@dataclass(frozen=True)
class NpuSettings:
    product: str  # u55, u65, u85
    macs: int
    packages: Path | None  # where numpy is, when Python does not look there by itself


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
        attachment, npu = Attachment(), None
        if program.doorbell or program.functions:
            memory, attachment = stack.enter_context(_shared_memory())
            if program.doorbell:
                stack.enter_context(_doorbell(cwd, memory, settings))
            else:
                shared = partial(GuestMemory, shared=memory, origin=DDR.origin, size=DDR.size)
                npu = Npu(_identity(settings), _later(settings), shared)
        if npu is not None or (heap is not None and program.heap_calls):
            attended = _attended(attachment, program, heap, npu, read_end)
            attachment = stack.enter_context(attended)
        yield attachment


def npu_driver(program: Program) -> str:
    """How the program reaches an NPU: "doorbell", "driver" (ethos-u-core-driver), or not: ""."""
    if program.doorbell:
        return "doorbell"
    return "driver" if program.functions else ""


@contextmanager
def _doorbell(cwd: Path, memory: SharedMemory, settings: NpuSettings) -> Iterator[None]:
    from harness.ethosu.doorbell import serving

    _remove_stale(cwd)
    with serving(cwd, memory, _identity(settings), _model(settings)):
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

    descriptor = os.memfd_create("ddr")
    try:
        os.ftruncate(descriptor, DDR.size)
        backend = f"memory-backend-file,id=ddr,size={DDR.size},share=on"
        yield (
            SharedMemory(Path(f"/proc/self/fd/{descriptor}"), DDR.origin),
            Attachment(
                words=("-object", f"{backend},mem-path=/proc/self/fd/{descriptor}"),
                machine=",memory-backend=ddr",
                descriptors=(descriptor,),
            ),
        )
    finally:
        os.close(descriptor)


def _identity(settings: NpuSettings) -> Identity:
    from harness.ethosu.doorbell import Identity

    return Identity(CONFIG_WORDS[settings.product, settings.macs], ID_WORDS[settings.product])


def _later(settings: NpuSettings) -> Run:
    """The model is loaded for its first job: many a program with a driver has none."""
    model = cache(lambda: _model(settings))
    return lambda commands, regions: model()(commands, regions)


def _model(settings: NpuSettings) -> Run:
    if settings.packages is not None and str(settings.packages) not in sys.path:
        sys.path.append(str(settings.packages))
    # For the decoder of weights, which is a process of its own.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent.parent)
    try:
        from harness.ethosu.doorbell_npu import npu
    except ImportError as error:
        raise StandinError(f"the NPU model cannot be loaded: {error}") from error
    return npu(settings.product, settings.macs)
