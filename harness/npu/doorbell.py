"""The host's side of the doorbell: a guest's NPU is a Python callable working in the guest's RAM.

The format is that of ``targets/runner/ethosu/doorbell.h``, which tells it whole; every offset
here is one of that header's. In short: the guest's DDR is memory that we share (QEMU: ``-object
memory-backend-file,id=ddr,size=2G,mem-path=F,share=on -machine memory-backend=ddr``, where F is
a descriptor that it inherits); the guest writes a ring of 16 bytes to the FIFO ``npu-request`` in
its current directory and blocks reading the ring's sequence number from ``npu-answer``; in between
the host does what the mailbox asks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from harness.formats.ethosu import CONFIG_WORDS, ID_WORDS

REQUEST_FIFO = "npu-request"
ANSWER_FIFO = "npu-answer"
MEMORY_FILE = "npu-memory"  # of a native program
DDR_BASE = 0x60000000  # of QEMU's mps3-an547; its DDR is the memory backend

_RING = struct.Struct("<IIQ")  # magic, sequence, address of the mailbox
_RING_MAGIC = 0x474E4952
_ASK = struct.Struct("<III")  # magic, version, command
_ASK_MAGIC = 0x55504E48
_VERSION = 1
_ANSWER = struct.Struct("<5I")  # result, config, id, status, qread
_ANSWER_AT = 12
_JOB = struct.Struct("<QQII")  # command stream, its bytes, region count, reserved
_JOB_AT = 32
_REGION = struct.Struct("<QQ")
_REGIONS_AT = 56
_REGIONS = 8
_CYCLES_AT = 184
_MESSAGE_AT = 192
_MESSAGE_BYTES = 192
_MAILBOX_BYTES = 384

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
class Identity:
    """The NPU's CONFIG and ID registers."""

    config: int  # log2 of the MACs [3:0], product [31:28]: 0 U55, 1 U65, 2 U85
    id: int  # architecture version [31:16]

    @classmethod
    def of(cls, product: str, macs: int) -> Identity:
        """KeyError: there is no such NPU."""
        return cls(CONFIG_WORDS[product, macs], ID_WORDS[product])


# The command stream and the regions (weights, scratch, fast scratch, ...), in place and writable;
# None where the guest gave none.
Run = Callable[[memoryview, Sequence["memoryview | None"]], Outcome]


class Refused(Exception):
    """The guest's request makes no sense; the text goes to the guest."""


class SharedMemory:
    """The guest's RAM: an anonymous file in memory that takes only the space that is used.

    It is sealed, so that nobody who gets hold of it can make it shorter than what is mapped here.
    Raises OSError where there is no memory to be had.
    """

    def __init__(self, size: int, base: int = DDR_BASE) -> None:
        self.size = size
        self.base = base
        self._view: memoryview | None = None
        self.descriptor = os.memfd_create("ddr", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        except OSError:
            os.close(self.descriptor)
            raise

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *_: object) -> None:
        """Views that were given out stay valid while somebody holds them."""
        self._view = None
        os.close(self.descriptor)

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def path(self) -> str:
        """The name of the memory for a process that inherits the descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def at(self, address: int, size: int) -> memoryview:
        view = self._map()
        start = address - self.base
        if start < 0 or size < 0 or start + size > len(view):
            raise Refused(
                f"{size} bytes at 0x{address:x} lie outside the shared memory "
                f"0x{self.base:x} to 0x{self.base + len(view):x}"
            )
        return view[start : start + size]

    def offset(self, view: memoryview) -> int | None:
        """The offset of a view in the memory; None when it is not a view of this memory."""
        if self._view is None or view.obj is not self._view.obj or not view:
            return None
        return _address(view) - _address(self._view)

    def _map(self) -> memoryview:
        if self._view is None:
            self._view = memoryview(mmap.mmap(self.descriptor, self.size))
        return self._view


def _address(view: memoryview) -> int:
    from ctypes import addressof, c_char  # slow to import

    return addressof(c_char.from_buffer(view))


@contextmanager
def serving(work: Path, memory: SharedMemory, identity: Identity, run: Run) -> Iterator[None]:
    """Answer the guest whose current directory is ``work`` while the block runs.

    The FIFOs exist before the block starts. An exception of ``run`` ends the service, so that
    the guest reports an NPU that does not answer, and is raised when the block ends.
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
    request: int, answer: int, memory: SharedMemory, identity: Identity, run: Run
) -> Iterator[None]:
    """As ``serving``, over two open descriptors, which are closed when the service ends; a write to
    ``answer`` must not wait."""
    with ExitStack() as stack:
        wake_read, wake_write = os.pipe()
        stack.callback(os.close, wake_read)
        executor = stack.enter_context(ThreadPoolExecutor(1, "npu"))
        server = _Server(request, answer, memory, identity, run)
        service = executor.submit(server.serve, wake_read)
        try:
            yield
        finally:
            os.close(wake_write)
        service.result()


class _Server:
    def __init__(
        self, request: int, answer: int, memory: SharedMemory, identity: Identity, run: Run
    ) -> None:
        self._request = request
        self._answer = answer
        self._memory = memory
        self._identity = identity
        self._run = run

    def serve(self, stop: int) -> None:
        """Until the guest closes its end, or leaves its answers unread until there is no place
        for more, or ``stop`` becomes readable. Closes both FIFOs."""
        try:
            while True:
                ready = select.select([self._request, stop], [], [])[0]
                if stop in ready:
                    return
                try:
                    ring = os.read(self._request, _RING.size)
                except ConnectionResetError:  # a socket, closed with an answer unread
                    return
                if len(ring) != _RING.size:
                    return
                magic, sequence, address = _RING.unpack(ring)
                if magic != _RING_MAGIC:
                    return
                self._answer_mailbox(address)
                try:
                    os.write(self._answer, struct.pack("<I", sequence))
                except (BlockingIOError, BrokenPipeError):
                    return
        finally:
            os.close(self._request)
            os.close(self._answer)

    def _answer_mailbox(self, address: int) -> None:
        try:
            box = self._memory.at(address, _MAILBOX_BYTES)
        except Refused:
            return  # nowhere to write to; the guest finds its own "refused" there
        try:
            outcome = self._do(box)
        except Refused as refused:
            outcome = Outcome(Result.REFUSED, str(refused), status=0)
        write_answer(box, self._identity, outcome)

    def _do(self, box: memoryview) -> Outcome:
        magic, version, command = _ASK.unpack_from(box)
        if magic != _ASK_MAGIC or version != _VERSION:
            raise Refused(f"mailbox magic 0x{magic:x}, version {version}; expected {_VERSION}")
        if command == _Command.IDENTIFY:
            return Outcome(status=0)
        if command != _Command.RUN:
            raise Refused(f"unknown command {command}")
        commands, size, count, _ = _JOB.unpack_from(box, _JOB_AT)
        if count > _REGIONS:
            raise Refused(f"{count} regions; at most {_REGIONS}")
        regions = [self._region(box, index) for index in range(count)]
        return self._run(self._memory.at(commands, size), regions)

    def _region(self, box: memoryview, index: int) -> memoryview | None:
        address, size = _REGION.unpack_from(box, _REGIONS_AT + index * _REGION.size)
        return self._memory.at(address, size) if size else None


def write_answer(box: memoryview, identity: Identity, outcome: Outcome) -> None:
    """The fields of the mailbox that belong to the host."""
    text = outcome.message.encode()[: _MESSAGE_BYTES - 1]
    text = text.decode("utf-8", "ignore").encode()  # no half character at the end
    box[_MESSAGE_AT : _MESSAGE_AT + _MESSAGE_BYTES] = text.ljust(_MESSAGE_BYTES, b"\0")
    struct.pack_into("<Q", box, _CYCLES_AT, 0)
    _ANSWER.pack_into(
        box,
        _ANSWER_AT,
        outcome.result,
        identity.config,
        identity.id,
        outcome.status,
        outcome.qread,
    )
