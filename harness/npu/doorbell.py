"""The host's side of the doorbell: a Python callable is the guest's NPU and works in its RAM.

``targets/runner/ethosu/doorbell.h`` documents the format; the structures here are that header's.
In short: the harness shares the guest's DDR (QEMU: ``-object
memory-backend-file,id=ddr,size=2G,mem-path=F,share=on -machine memory-backend=ddr``, where F is
an inherited descriptor). The guest writes a ring of 16 bytes to the FIFO ``npu-request`` in its
current directory and blocks until it reads the ring's sequence number from ``npu-answer``. In
between the host executes the command in the mailbox.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from ctypes import LittleEndianStructure, addressof, c_char, c_uint32, c_uint64, sizeof
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path

from harness.formats.ethosu import CONFIG_WORDS, ID_WORDS

REQUEST_FIFO = "npu-request"
ANSWER_FIFO = "npu-answer"
MEMORY_FILE = "npu-memory"  # of a native program
DDR_BASE = 0x60000000  # of QEMU's mps3-an547; its DDR is the memory backend

_RING_MAGIC = 0x474E4952
_ASK_MAGIC = 0x55504E48
_VERSION = 1
_REGIONS = 8
_MESSAGE_BYTES = 192


class Ring(LittleEndianStructure):
    _fields_ = (("magic", c_uint32), ("sequence", c_uint32), ("mailbox", c_uint64))


class _Region(LittleEndianStructure):
    _fields_ = (("address", c_uint64), ("bytes", c_uint64))


_QUESTION = ("magic", "version", "command")
_ANSWER = ("result", "npu_config", "npu_id", "npu_status", "qread")  # the host's


class Mailbox(LittleEndianStructure):
    _fields_ = (
        *((name, c_uint32) for name in (*_QUESTION, *_ANSWER)),
        *((name, c_uint64) for name in ("commands", "commands_bytes")),
        *((name, c_uint32) for name in ("region_count", "reserved")),
        ("regions", _Region * _REGIONS),
        ("cycles", c_uint64),  # the host's, as the message
        ("message", c_char * _MESSAGE_BYTES),
    )


# Bits of the NPU's STATUS register (ethos-u-vela, ethosu/vela/ethos_u55_regs).
STATUS_IRQ = 1 << 1
STATUS_BUS_ERROR = 1 << 2
STATUS_PARSE_ERROR = 1 << 4
STATUS_END = 1 << 5


class Result(IntEnum):
    OK = 0
    FAULT = 1
    REFUSED = 2
    UNSUPPORTED = 3


class _Command(IntEnum):
    IDENTIFY = 1
    RUN = 2


@dataclass(frozen=True)
class Outcome:
    """How a command stream ended. ``status`` and ``qread`` are what the NPU's registers show."""

    result: Result = Result.OK
    message: str = ""
    status: int = STATUS_IRQ | STATUS_END
    qread: int = 0


@dataclass(frozen=True)
class NpuIdentity:
    """The NPU's CONFIG and ID registers."""

    config: int  # log2 of the MACs [3:0], product [31:28]: 0 U55, 1 U65, 2 U85
    id: int  # architecture version [31:16]

    @classmethod
    def of(cls, product: str, macs: int) -> NpuIdentity:
        """Return the registers of an NPU. Raises KeyError for one that does not exist."""
        return cls(CONFIG_WORDS[product, macs], ID_WORDS[product])


# Takes the command stream and the regions (weights, scratch, fast scratch, ...), in place and
# writable. None: the guest gave no such region.
Run = Callable[[memoryview, Sequence["memoryview | None"]], Outcome]


class Refused(Exception):
    """The guest's request is invalid; the guest gets the text."""


class SharedMemory:
    """The guest's RAM: an anonymous file in memory, which takes only the space that is used.

    It is sealed: no process can make it shorter than the mapping. Raises OSError without memory.
    """

    def __init__(self, size: int, base: int = DDR_BASE) -> None:
        self.size = size
        self.base = base
        self.descriptor = os.memfd_create("ddr", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
            self._view = memoryview(mmap.mmap(self.descriptor, size))
        except OSError:
            os.close(self.descriptor)
            raise

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *_: object) -> None:
        """Existing views stay valid while they are referenced."""
        self._view = memoryview(b"")
        os.close(self.descriptor)

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def path(self) -> str:
        """The name of the memory for a process that inherits the descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def at(self, address: int, size: int) -> memoryview:
        start = address - self.base
        if start < 0 or size < 0 or start + size > len(self._view):
            raise Refused(
                f"{size} bytes at 0x{address:x} lie outside the shared memory "
                f"0x{self.base:x} to 0x{self.end:x}"
            )
        return self._view[start : start + size]

    def offset(self, view: memoryview) -> int | None:
        """Return the offset of a view in the memory; None when it is not a view of this memory."""
        if view.obj is not self._view.obj or not view:
            return None
        return _address(view) - _address(self._view)


def _address(view: memoryview) -> int:
    return addressof(c_char.from_buffer(view))


@contextmanager
def serving(work: Path, memory: SharedMemory, identity: NpuIdentity, run: Run) -> Iterator[None]:
    """While the block runs, answers the guest whose current directory is ``work``.

    The FIFOs exist before the block starts. An exception of ``run`` ends the service (the guest
    then reports an NPU that does not answer) and is raised when the block ends.
    """
    fifos = [work / name for name in (REQUEST_FIFO, ANSWER_FIFO)]
    with ExitStack() as stack:
        for fifo in fifos:
            os.mkfifo(fifo)
            stack.callback(fifo.unlink, missing_ok=True)  # the guest may have moved it
        # Read-write: neither end waits for the guest to open its own. Nor does an answer wait.
        request = os.open(fifos[0], os.O_RDONLY | os.O_NONBLOCK)
        answer = os.open(fifos[1], os.O_RDWR | os.O_NONBLOCK)
        stack.enter_context(answering(request, answer, memory, identity, run))
        yield


@contextmanager
def answering(
    request: int, answer: int, memory: SharedMemory, identity: NpuIdentity, run: Run
) -> Iterator[None]:
    """As ``serving``, with two open descriptors, which the service closes.

    A write to ``answer`` must not block."""
    with ExitStack() as stack:
        wake_read, wake_write = os.pipe()
        stack.callback(os.close, wake_read)
        executor = stack.enter_context(ThreadPoolExecutor(1, "npu"))
        answer_mailbox = partial(_answer_mailbox, memory, identity, run)
        service = executor.submit(_serve, request, answer, wake_read, answer_mailbox)
        try:
            yield
        finally:
            os.close(wake_write)
        service.result()


def _serve(request: int, answer: int, stop: int, answer_mailbox: Callable[[int], None]) -> None:
    """Serve until the guest closes its end, or ``stop`` becomes readable. Closes both FIFOs.

    It also ends when the answers that the guest has not read fill the pipe."""
    try:
        while stop not in select.select([request, stop], [], [])[0]:
            try:
                rung = os.read(request, sizeof(Ring))
            except ConnectionResetError:  # a socket, closed with an answer unread
                return
            if len(rung) != sizeof(Ring):
                return
            ring = Ring.from_buffer_copy(rung)
            if ring.magic != _RING_MAGIC:
                return
            answer_mailbox(ring.mailbox)
            try:
                os.write(answer, c_uint32(ring.sequence))
            except (BlockingIOError, BrokenPipeError):
                return
    finally:
        os.close(request)
        os.close(answer)


def _answer_mailbox(memory: SharedMemory, identity: NpuIdentity, run: Run, address: int) -> None:
    try:
        box = Mailbox.from_buffer(memory.at(address, sizeof(Mailbox)))
    except Refused:
        return  # nowhere to write to; the guest finds its own "refused" there
    try:
        outcome = _do(memory, box, run)
    except Refused as refused:
        outcome = Outcome(Result.REFUSED, str(refused), status=0)
    text = outcome.message.encode()[: _MESSAGE_BYTES - 1]
    box.message = text.decode("utf-8", "ignore").encode()  # no half character at the end
    box.cycles = 0
    box.npu_config, box.npu_id = identity.config, identity.id
    box.result, box.npu_status, box.qread = outcome.result, outcome.status, outcome.qread


def _do(memory: SharedMemory, box: Mailbox, run: Run) -> Outcome:
    magic, version, command = box.magic, box.version, box.command
    if magic != _ASK_MAGIC or version != _VERSION:
        raise Refused(f"mailbox magic 0x{magic:x}, version {version}; expected {_VERSION}")
    if command == _Command.IDENTIFY:
        return Outcome(status=0)
    if command != _Command.RUN:
        raise Refused(f"unknown command {command}")
    count = box.region_count
    if count > _REGIONS:
        raise Refused(f"{count} regions; at most {_REGIONS}")
    given = [(region.address, region.bytes) for region in box.regions[:count]]
    regions = [memory.at(address, size) if size else None for address, size in given]
    return run(memory.at(box.commands, box.commands_bytes), regions)
