"""The stand-in's NPU: harness/ethosu, reached as the program under test reaches an NPU.

A runner of ours built with HIL_ETHOSU_DRIVER=doorbell rings through two FIFOs in its directory
and shares its DDR. In any other program that has ethos-u-core-driver in it, the calls of that
driver are taken over by name, through QEMU's debugger interface.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.standin.driver import Driver, handled
from harness.standin.elf import Elf
from harness.standin.failure import StandinError
from harness.standin.machine import DDR

if TYPE_CHECKING:
    from harness.ethosu.doorbell import Identity, Run, SharedMemory


SP, LR, PC = 13, 14, 15
_CHUNK = 1024  # bytes of memory per packet, twice as many characters
_READ = 65536


class TargetEnded(Exception):
    """The program, or QEMU, is gone."""


class StubError(Exception):
    """The stub said no."""


class Stub:
    """A conversation over ``near``; it begins with the core stopped."""

    def __init__(self, near: socket.socket) -> None:
        self._near = near
        self._received = b""

    def open(self) -> None:
        """Only after its description was read does QEMU give single registers."""
        self._ask("qSupported:xmlRegisters=arm")
        self._ask("qXfer:features:read:target.xml:0,ffb")

    def breakpoint(self, address: int) -> None:
        self._expect_ok(f"Z0,{address:x},2")

    def resume(self) -> None:
        """Run to the next breakpoint. Raises TargetEnded when the program ends before it."""
        reply = self._ask("c")
        while reply[:1] not in (b"T", b"S"):
            if reply[:1] in (b"W", b"X", b""):
                raise TargetEnded
            reply = self._receive()  # output of the target, for a debugger's console

    def kill(self) -> None:
        """End QEMU; there is no reply."""
        with suppress(OSError):
            self._near.sendall(b"$k#6b")

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self._data(f"p{number:x}")), "little")

    def set_register(self, number: int, value: int) -> None:
        self._expect_ok(f"P{number:x}={(value & 0xFFFFFFFF).to_bytes(4, 'little').hex()}")

    def read(self, address: int, size: int) -> bytes:
        found = b""
        while len(found) < size:
            count = min(_CHUNK, size - len(found))
            found += bytes.fromhex(self._data(f"m{address + len(found):x},{count:x}"))
        return found

    def write(self, address: int, data: bytes) -> None:
        for at in range(0, len(data), _CHUNK):
            part = data[at : at + _CHUNK]
            self._expect_ok(f"M{address + at:x},{len(part):x}:{part.hex()}")

    def _data(self, text: str) -> str:
        reply = self._ask(text)
        if not reply or reply[:1] == b"E":
            raise StubError(f"{text} was answered {reply.decode('ascii', 'replace')!r}")
        return reply.decode("ascii")

    def _expect_ok(self, text: str) -> None:
        reply = self._ask(text)
        if reply != b"OK":
            raise StubError(f"{text[:40]} was answered {reply.decode('ascii', 'replace')!r}")

    def _ask(self, text: str) -> bytes:
        body = text.encode("ascii")
        try:
            self._near.sendall(b"$%b#%02x" % (body, sum(body) & 0xFF))
        except OSError as error:
            raise TargetEnded from error
        return self._receive()

    def _receive(self) -> bytes:
        """The next packet's content; acknowledgements before it are dropped."""
        while True:
            start = self._received.find(b"$")
            end = self._received.find(b"#", start)
            if start >= 0 and 0 <= end <= len(self._received) - 3:
                content = self._received[start + 1 : end]
                self._received = self._received[end + 3 :]
                self._acknowledge()
                return content
            try:
                data = self._near.recv(_READ)
            except OSError as error:
                raise TargetEnded from error
            if not data:
                raise TargetEnded
            self._received += data

    def _acknowledge(self) -> None:
        try:
            self._near.sendall(b"+")
        except OSError as error:
            raise TargetEnded from error


RESULTS_ONLY = "ethos-u : cycle_cnt : 0 cycles (a functional stand-in: results, not time)"


@dataclass(frozen=True)
class NpuSettings:
    product: str  # u55, u65, u85
    macs: int
    packages: Path | None  # where numpy is, when Python does not look there by itself


@dataclass(frozen=True)
class Attachment:
    """What QEMU needs: words for its command line and descriptors to inherit."""

    words: tuple[str, ...] = ()
    machine: str = ""  # more properties of the machine
    descriptors: tuple[int, ...] = ()
    handed_over: tuple[socket.socket, ...] = ()  # to be closed here once QEMU has them


@contextmanager
def attached(
    elf: Elf, settings: NpuSettings, cwd: Path, log: Callable[[str], None]
) -> Iterator[Attachment]:
    """An NPU for ``elf`` while the block runs; a program that has no use for one gets none."""
    driver = npu_driver(elf)
    if driver == "doorbell":
        with _doorbell(settings, cwd) as attachment:
            yield attachment
    elif driver == "driver":
        with _intercepted(_entries(elf), settings, log) as attachment:
            yield attachment
    else:
        yield Attachment()


def npu_driver(elf: Elf) -> str:
    """How the program reaches an NPU: "doorbell", "driver" (ethos-u-core-driver), or not: ""."""
    if elf.doorbell:
        return "doorbell"
    return "driver" if _entries(elf) else ""


def _entries(elf: Elf) -> dict[str, int]:
    return {name: address for name, address in elf.functions.items() if handled(name)}


@contextmanager
def _doorbell(settings: NpuSettings, cwd: Path) -> Iterator[Attachment]:
    from harness.ethosu.doorbell import serving

    _remove_stale(cwd)
    with _shared_memory() as (memory, attachment):
        identity, run = _model(settings)
        with serving(cwd, memory, identity, run):
            yield attachment


def _remove_stale(cwd: Path) -> None:
    """FIFOs that a killed run has left."""
    from harness.ethosu.doorbell import ANSWER_FIFO, REQUEST_FIFO

    for path in (cwd / REQUEST_FIFO, cwd / ANSWER_FIFO):
        with suppress(FileNotFoundError):
            if not stat.S_ISFIFO(path.lstat().st_mode):
                raise StandinError(f"{path} exists and is not a FIFO; the NPU needs its place")
            path.unlink()


@contextmanager
def _intercepted(
    names: dict[str, int], settings: NpuSettings, log: Callable[[str], None]
) -> Iterator[Attachment]:
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and few programs need it

    with ExitStack() as stack:
        memory, shared = stack.enter_context(_shared_memory())
        near, far = socket.socketpair()
        stack.callback(near.close)
        stack.callback(far.close)
        identity, run = _model(settings)
        stub = Stub(near)
        guest = _GuestMemory(memory, stub)
        debugger = ThreadPoolExecutor(1, "npu")
        service = debugger.submit(_serve, stub, names, Driver(guest, identity, run, log), log)
        try:
            yield Attachment(
                words=(
                    *shared.words,
                    *("-chardev", f"socket,id=gdb,fd={far.fileno()}"),
                    *("-gdb", "chardev:gdb", "-S"),
                ),
                machine=shared.machine,
                descriptors=(*shared.descriptors, far.fileno()),
                handed_over=(far,),
            )
        finally:
            with suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)
            debugger.shutdown()
        service.result()


def _serve(stub: Stub, names: dict[str, int], driver: Driver, log: Callable[[str], None]) -> None:
    """Every call of a function in ``names`` returns at once, with the driver's answer."""
    by_address = {address: name for name, address in names.items()}
    told = False
    try:
        stub.open()
        for address in by_address:
            stub.breakpoint(address)
        while True:
            stub.resume()
            name = by_address[stub.register(PC) & ~1]
            if name.startswith("ethosu_invoke") and not told:
                log(RESULTS_ONLY)
                told = True
            stub.set_register(0, driver.call(name, lambda n: _argument(stub, n)))
            stub.set_register(PC, stub.register(LR) & ~1)
    except TargetEnded:
        return
    except StubError as error:
        stub.kill()
        raise StandinError(f"QEMU's debugger interface: {error}") from error
    except BaseException:
        stub.kill()  # the program waits for an answer that will not come
        raise


def _argument(stub: Stub, number: int) -> int:
    """Procedure call standard (Arm AAPCS32): four words in registers, the rest on the stack."""
    if number < 4:
        return stub.register(number)
    return int.from_bytes(stub.read(stub.register(SP) + 4 * (number - 4), 4), "little")


class _GuestMemory:
    """DDR is shared; whatever lies elsewhere is copied through the debugger interface."""

    def __init__(self, ddr: SharedMemory, stub: Stub) -> None:
        self._ddr = ddr
        self._stub = stub

    def read(self, address: int, size: int) -> bytes:
        if _in_ddr(address, size):
            return bytes(self._ddr.at(address, size))
        return self._stub.read(address, size)

    def view(self, address: int, size: int) -> memoryview:
        if _in_ddr(address, size):
            return self._ddr.at(address, size)
        return memoryview(bytearray(self._stub.read(address, size)))

    def commit(self, address: int, view: memoryview) -> None:
        if not _in_ddr(address, len(view)):
            self._stub.write(address, bytes(view))


def _in_ddr(address: int, size: int) -> bool:
    return DDR.origin <= address and address + size <= DDR.origin + DDR.size


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


def _model(settings: NpuSettings) -> tuple[Identity, Run]:
    if settings.packages is not None and str(settings.packages) not in sys.path:
        sys.path.append(str(settings.packages))
    # For the decoder of weights, which is a process of its own.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent.parent)
    try:
        from harness.ethosu.doorbell_npu import identity, npu
    except ImportError as error:
        raise StandinError(f"the NPU model cannot be loaded: {error}") from error
    return identity(settings.product, settings.macs), npu(settings.product, settings.macs)
