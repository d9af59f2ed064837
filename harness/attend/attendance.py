"""Somebody who serves one QEMU from its start to its end, in a thread.

QEMU is started with ``-S`` and waits for the first word on its debugger interface, a socket: one
that it inherits, or one of a short name in its current directory to which it connects. So nobody
has to ask whether it is there yet, and a QEMU that cannot connect says so and ends.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.attend.driver import Driver, GuestMemory
from harness.attend.heap import HeapInfo
from harness.attend.program import Program
from harness.attend.service import Service
from harness.attend.stub import Stub, TargetEnded
from harness.attend.ticks import Steps, Ticks

if TYPE_CHECKING:
    from harness.ethosu.doorbell import Identity, Run

WORDS = ("-gdb", "chardev:gdb", "-S")  # behind a chardev of this name


@dataclass(frozen=True)
class Npu:
    """What the program's driver drives. ``identity`` is None when there is none, and ``run`` says
    so; ``memory`` makes the way to the guest's memory."""

    identity: Identity | None
    run: Run
    memory: Callable[[Stub], GuestMemory]


class Line(Protocol):
    """The way to one QEMU."""

    def connect(self) -> socket.socket:
        """Waits for QEMU. OSError when it was hung up meanwhile."""
        ...

    def hang_up(self) -> None: ...


class Pair:
    """``far`` is inherited by QEMU: ``-chardev socket,id=gdb,fd=…``."""

    def __init__(self) -> None:
        self._near, self.far = socket.socketpair()

    def connect(self) -> socket.socket:
        return self._near

    def hang_up(self) -> None:
        self.far.close()
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)


class Listener:
    """A socket in QEMU's current directory: ``-chardev socket,id=gdb,path=NAME``."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._near: socket.socket | None = None
        # Through the directory's descriptor: the path itself may be too long for a socket.
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._listener.bind(f"/proc/self/fd/{directory}/{name}")
            self._listener.listen(1)
        except OSError:
            self._listener.close()
            raise
        finally:
            os.close(directory)

    def connect(self) -> socket.socket:
        self._near, _ = self._listener.accept()
        return self._near

    def hang_up(self) -> None:
        for end in (self._listener, self._near):
            if end is not None:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # wakes up who waits for it
        self._path.unlink(missing_ok=True)


class Attendance:
    """What is known of the program afterwards. ``status``: the exit status that it gave itself;
    None when QEMU ended in another way, or nobody was asked to serve it."""

    def __init__(self) -> None:
        self.status: int | None = None


@contextmanager
def attending(
    line: Line,
    program: Program,
    heap: HeapInfo | None,
    npu: Npu | None,
    log: Callable[[str], None],
    steps: Steps | None = None,
) -> Iterator[Attendance]:
    """Serve the program of the QEMU at the other end of ``line`` while the block runs.

    ``heap``, ``npu``, ``steps``: None where nothing is to be done about it. At the end of the
    block StubError or GuestStuck is raised, when that is why QEMU was ended.
    """
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and few programs need it

    attendance = Attendance()
    executor = ThreadPoolExecutor(1, "attend")
    service = executor.submit(_serve, attendance, line, program, heap, npu, log, steps)
    try:
        yield attendance
    finally:
        line.hang_up()
        executor.shutdown()
    service.result()


def _serve(
    attendance: Attendance,
    line: Line,
    program: Program,
    heap: HeapInfo | None,
    npu: Npu | None,
    log: Callable[[str], None],
    steps: Steps | None,
) -> None:
    try:
        near = line.connect()
    except OSError:
        return  # QEMU never came
    with near:
        stub = Stub(near)
        ticks = None if steps is None else Ticks(stub, steps, log)
        service = Service(stub, program, heap, ticks)
        driver = None
        if npu is not None:
            driver = Driver(npu.memory(stub), npu.identity, npu.run, log, service.hook)
        try:
            service.run(driver)
        except TargetEnded as ended:
            attendance.status = ended.status
        except BaseException:
            stub.kill()  # the program waits for an answer that will not come
            raise
