"""A labgrid driver for a board that is QEMU: power, reset and flashing as of hardware, its serial
line on a pseudo-terminal. Flash is written through QEMU's gdb stub.

An environment file names this file under ``imports``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import tty
from pathlib import Path

import attr
from elftools.elf.elffile import ELFFile
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.protocol import BootstrapProtocol, PowerProtocol, ResetProtocol

_CHUNK = 1984  # bytes in a packet of the gdb stub, twice as many characters; QEMU takes 4096
_SECONDS = 20.0  # for an answer of the gdb stub


class GdbStub:
    """One conversation, in which the core stands still. Source: "Debugging with GDB", appendix E;
    QEMU's documentation, "GDB usage"."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_SECONDS)
        self._socket.connect(str(path))
        self._received = b""

    def __enter__(self) -> GdbStub:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, text: str) -> str:
        self._socket.sendall(b"$%s#%02x" % (text.encode(), sum(text.encode()) & 0xFF))
        while True:
            _, begun, rest = self._received.partition(b"$")
            content, _, checksum = rest.partition(b"#")
            if begun and len(checksum) >= 2:
                self._received = checksum[2:]
                self._socket.sendall(b"+")
                if not content.startswith(b"T"):  # that the core has stopped, for us
                    return content.decode()
                continue
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("QEMU's gdb stub ended the conversation")
            self._received += data

    def write(self, address: int, data: bytes) -> None:
        for offset in range(0, len(data), _CHUNK):
            part = data[offset : offset + _CHUNK]
            answer = self.ask(f"M{address + offset:x},{len(part):x}:{part.hex()}")
            if answer != "OK":
                raise OSError(f"0x{address + offset:x} cannot be written: {answer!r}")

    def restart(self) -> None:
        """Reset, and let it run."""
        self.ask("qRcmd," + b"system_reset".hex())
        self.ask("g")  # its answer comes when the reset is done
        self.ask("D")


@target_factory.reg_driver
@attr.s(eq=False)
class QemuBoardDriver(Driver, PowerProtocol, ResetProtocol, BootstrapProtocol):
    """``machine``: as QEMU calls it. ``port``: where the serial line is to appear. ``executable``:
    QEMU itself. Its flash keeps what is written until the power goes."""

    machine = attr.ib(validator=attr.validators.instance_of(str))
    port = attr.ib(validator=attr.validators.instance_of(str))
    executable = attr.ib(default="qemu-system-arm", validator=attr.validators.instance_of(str))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._qemu: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="board-"))
        self._near, self._far = os.openpty()
        tty.setraw(self._far)

    @property
    def _stub(self) -> Path:
        return self._folder / "gdb"

    def on_activate(self) -> None:
        link = Path(self.port)
        link.unlink(missing_ok=True)
        link.symlink_to(os.ttyname(self._far))

    def on_deactivate(self) -> None:
        self.off()
        Path(self.port).unlink(missing_ok=True)
        self._stub.unlink(missing_ok=True)
        self._folder.rmdir()

    def on(self) -> None:
        if self._qemu is not None:
            return
        self._stub.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as stub:  # it listens before QEMU has begun
            stub.bind(str(self._stub))
            stub.listen()
            words = (
                *(self.executable, "-M", self.machine, "-nographic", "-monitor", "none"),
                *("-serial", "stdio", "-S", "-gdb", "chardev:stub"),
                *("-chardev", f"socket,id=stub,fd={stub.fileno()},server=on,wait=off"),
            )
            self._qemu = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                bufsize=0,
                pass_fds=(stub.fileno(),),
            )
        threading.Thread(target=self._serve_line, args=(self._qemu,), daemon=True).start()

    def off(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
            self._qemu = None

    def cycle(self) -> None:
        self.off()
        self.on()

    def reset(self) -> None:
        with GdbStub(self._stub) as stub:
            stub.restart()

    def load(self, filename: str) -> None:
        """An ELF or an Intel HEX file, at its own addresses; then the board starts."""
        with GdbStub(self._stub) as stub:
            for address, data in _parts(Path(filename)):
                stub.write(address, data)
            stub.restart()

    def transmit(self, data: bytes) -> None:
        """What the board sends goes onto the line."""
        os.write(self._near, data)

    def _serve_line(self, qemu: subprocess.Popen[bytes]) -> None:
        assert qemu.stdout is not None
        while data := qemu.stdout.read(4096):
            self.transmit(data)


def _parts(file: Path) -> list[tuple[int, bytes]]:
    """Addresses and bytes."""
    if file.suffix == ".hex":
        return _hex_parts(file.read_text().split())
    with file.open("rb") as opened:
        segments = list(ELFFile(opened).iter_segments("PT_LOAD"))
        return [(s["p_paddr"], s.data()) for s in segments if s["p_filesz"]]


def _hex_parts(records: list[str]) -> list[tuple[int, bytes]]:
    parts: list[tuple[int, bytes]] = []
    upper = 0
    for record in records:
        body = bytes.fromhex(record[1:])
        place, kind, data = int.from_bytes(body[1:3], "big"), body[3], body[4:-1]
        if kind == 4:
            upper = int.from_bytes(data, "big") << 16
        elif kind == 0 and parts and sum((parts[-1][0], len(parts[-1][1]))) == upper + place:
            parts[-1] = (parts[-1][0], parts[-1][1] + data)
        elif kind == 0:
            parts.append((upper + place, data))
    return parts
