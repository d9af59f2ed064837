"""A stand-in that stays: all it imports, NPU model included, is loaded once for many simulations.

Each simulation is a fork of it, so one that fails takes nothing with it and leaves nothing behind;
when whoever asked goes away, or the resident itself ends, its simulation ends too. Started as a
script, with the socket to listen at and where numpy is.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os.path import abspath, dirname
from pathlib import Path
from typing import Any, NoReturn

if not __package__:  # started as a file, isolated: the project is not on the path
    sys.path.insert(0, dirname(dirname(dirname(abspath(__file__)))))

from harness.standin.failure import OWN_FAULT, StandinError
from harness.standin.main import main
from harness.system import confine, tie, toolchain

PLACE = "HIL_STANDIN_RESIDENT"  # in the environment of the commands: where it listens
_LONGEST = 1 << 24  # bytes of a request


@dataclass(frozen=True)
class _Request:
    name: str
    cwd: str
    argv: tuple[str, ...]
    environment: Mapping[bytes, bytes]
    descriptors: tuple[int, ...]


@contextmanager
def resident(packages: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """One that listens while the block runs: what the commands find in ``PLACE``.

    Raises StandinError when it does not start.
    """
    place = f"hil-standin-{os.getpid()}-{os.urandom(8).hex()}"
    words = [str(toolchain.require("setpriv").path), "--pdeathsig", "KILL", "--"]
    words += [sys.executable, "-I", "-S", str(Path(__file__)), place, str(packages)]
    process = subprocess.Popen(
        words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise StandinError(f"the resident stand-in ended with status {process.wait()}")
        yield place
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def serve(place: str, packages: Path) -> NoReturn:
    """Until somebody ends it. The socket has no file: it ends with us, and a name is never too
    long; who asks has to be of this user."""
    sys.path.append(str(packages))
    _load()
    resident_process = os.getpid()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{place}")
    listener.listen(64)
    print("listening", flush=True)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    working: dict[int, socket.socket] = {}  # by process
    while True:
        listened: list[Any] = [listener, woken, *working.values()]
        ready = select.select(listened, [], [])[0]
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
        for process, connection in working.items():
            if connection in ready:  # it has nothing more to say: it has gone
                os.kill(process, signal.SIGKILL)
        for process in _ended(working):
            working.pop(process).close()
        if listener in ready:
            connection = listener.accept()[0]
            if not _ours(connection):
                connection.close()
                continue
            try:
                request = _receive(connection)
            except (OSError, ValueError):  # it has gone already
                connection.close()
                continue
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                ours = [woken, wake, listener.fileno(), connection.fileno()]
                for descriptor in (*ours, *(one.fileno() for one in working.values())):
                    os.close(descriptor)
                _simulate(request, packages, resident_process)
            for descriptor in request.descriptors:
                os.close(descriptor)
            working[process] = connection


def _load() -> None:
    """All that a simulation imports, and what it finds out about this machine each time."""
    import numpy  # noqa: F401

    from harness.attend import attendance  # noqa: F401
    from harness.ethosu import doorbell_npu, npu_process, npu_worker  # noqa: F401
    from harness.ethosu.kernel_library import load

    load()  # its threads are started by the first job
    toolchain.require("setpriv")
    confine.why_not()
    tie.prepare()
    gc.collect()
    gc.freeze()


def _ours(connection: socket.socket) -> bool:
    size = struct.calcsize("3i")
    content = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", content)[1] == os.geteuid())


def _ended(working: Mapping[int, socket.socket]) -> list[int]:
    """Processes that are gone; what did not answer by itself is answered for."""
    gone = []
    for process, connection in working.items():
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            gone.append(process)
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                connection.sendall(code.to_bytes(4, "little", signed=True))
    return gone


def _simulate(request: _Request, packages: Path, parent: int) -> NoReturn:
    """In the fork."""
    status = OWN_FAULT
    try:
        tie.tie_to(parent)
        for number, descriptor in enumerate(request.descriptors, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(request.cwd)
        os.environb.clear()
        os.environb.update(request.environment)
        status = main(request.name, request.argv, packages, forked=True)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # the boundary of this process: whoever asked is told
        os.write(2, f"Error: the resident stand-in: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status & 0xFF)


def _receive(connection: socket.socket) -> _Request:
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 2)
    while len(head) < 4:
        head += _piece(connection, 4 - len(head))
    size = int.from_bytes(head, "little")
    if size > _LONGEST or len(descriptors) != 2:
        raise ConnectionError
    content = b""
    while len(content) < size:
        content += _piece(connection, size - len(content))
    name, cwd, count, *rest = content.split(b"\0")
    pairs = (word.partition(b"=") for word in rest[int(count) :])
    return _Request(
        os.fsdecode(name),
        os.fsdecode(cwd),
        tuple(os.fsdecode(word) for word in rest[: int(count)]),
        {key: value for key, _, value in pairs},
        tuple(descriptors),
    )


def _piece(connection: socket.socket, most: int) -> bytes:
    data = connection.recv(most)
    if not data:
        raise ConnectionError
    return data


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
