"""A client of QEMU's debugger interface (GDB's remote serial protocol).

Source: "Debugging with GDB", appendix E; QEMU docs, "GDB usage".
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from harness.core.errors import InfraError

SP, LR, PC = 13, 14, 15
_CHUNK = 1984  # bytes of memory per packet, twice as many characters; QEMU takes 4096
_READ = 65536


class TargetEnded(Exception):
    """The program or QEMU has ended. ``status``: the program's own, if QEMU reported it."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class StubError(InfraError):
    """The stub refused a command, or its reply is not understood."""

    kind = "debugger_interface"

    def __init__(self, problem: str) -> None:
        super().__init__(f"QEMU's debugger interface: {problem}")


class Stub:
    """A connection over ``near``; the core is stopped at first.

    ``resumes`` is called before it runs."""

    def __init__(self, near: socket.socket, resumes: Callable[[], object] = lambda: None) -> None:
        self._near = near
        self._received = b""
        self._resumes = resumes

    def open(self) -> None:
        """Read the target description: only then does QEMU return single registers."""
        self._command("qSupported:xmlRegisters=arm")
        self._command("qXfer:features:read:target.xml:0,ffb")

    def breakpoint(self, address: int) -> None:
        self._expect_ok(f"Z0,{address:x},2")

    def remove_breakpoint(self, address: int) -> None:
        self._expect_ok(f"z0,{address:x},2")

    def resume(self) -> None:
        """Run to the next breakpoint. Raises TargetEnded when the program ends before it."""
        self._resumes()
        self._run("c")

    def step_over(self, address: int) -> None:
        """Execute the instruction at the breakpoint where the core is."""
        self.remove_breakpoint(address)
        self._run("s")
        self.breakpoint(address)

    def kill(self) -> None:
        """End QEMU; there is no reply."""
        with suppress(OSError):
            self._near.sendall(b"$k#6b")

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self._data(f"p{number:x}")), "little")

    def set_register(self, number: int, value: int) -> None:
        self._expect_ok(f"P{number:x}={(value & 0xFFFFFFFF).to_bytes(4, 'little').hex()}")

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 4), "little")

    def read(self, address: int, size: int) -> bytes:
        data = b""
        while len(data) < size:
            count = min(_CHUNK, size - len(data))
            data += bytes.fromhex(self._data(f"m{address + len(data):x},{count:x}"))
        return data

    def write(self, address: int, data: bytes) -> None:
        for offset in range(0, len(data), _CHUNK):
            part = data[offset : offset + _CHUNK]
            self._expect_ok(f"M{address + offset:x},{len(part):x}:{part.hex()}")

    def _run(self, command: str) -> None:
        reply = self._command(command)
        while reply[:1] not in (b"T", b"S"):
            if reply[:1] == b"W":
                raise TargetEnded(int(reply[1:3], 16))
            if reply[:1] in (b"X", b""):
                raise TargetEnded
            reply = self._receive()  # output of the target, for a debugger's console

    def _data(self, text: str) -> str:
        reply = self._command(text)
        if not reply or reply[:1] == b"E":
            raise StubError(f"{text} was answered {reply.decode('ascii', 'replace')!r}")
        return reply.decode("ascii")

    def _expect_ok(self, text: str) -> None:
        reply = self._command(text)
        if reply != b"OK":
            raise StubError(f"{text[:40]} was answered {reply.decode('ascii', 'replace')!r}")

    def _command(self, text: str) -> bytes:
        body = text.encode("ascii")
        try:
            self._near.sendall(b"$%b#%02x" % (body, sum(body) & 0xFF))
        except OSError as error:
            raise TargetEnded from error
        return self._receive()

    def _receive(self) -> bytes:
        """Return the next packet's content; acknowledgements before it are dropped."""
        while True:
            start = self._received.find(b"$")
            end = self._received.find(b"#", start)
            if start >= 0 and 0 <= end <= len(self._received) - 3:
                content = self._received[start + 1 : end]
                self._received = self._received[end + 3 :]
                with suppress(OSError):  # QEMU may have closed it after its last reply
                    self._near.sendall(b"+")
                return content
            try:
                data = self._near.recv(_READ)
            except OSError as error:
                raise TargetEnded from error
            if not data:
                raise TargetEnded
            self._received += data
