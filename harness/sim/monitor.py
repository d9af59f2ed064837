"""Ask QEMU's human monitor where the CPU is. QEMU 7.2: "info registers" and "x"."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

_SECONDS = 0.5  # for each answer; a run that hangs shall not make us hang
_PROMPT = b"(qemu) "
_REGISTER = re.compile(r"\b(R\d{2}|XPSR|PC|X\d{2}|SP)=([0-9a-f]{8,16})\b")
_WORD = re.compile(r"0x([0-9a-f]{8})\b")
_STACK_WORDS = 256
_NAMES = {"r15": "pc", "r14": "lr", "r13": "sp"}


@dataclass(frozen=True)
class CpuState:
    """Registers by name ("pc", "lr", "sp", "r00"...) and the words the stack pointer points to."""

    registers: dict[str, int]
    stack: tuple[int, ...]


def cpu_state(folder: Path, name: str) -> CpuState | None:
    """What the CPU does right now; None when the monitor does not answer in time."""
    try:
        with _connect(folder, name) as connection:
            monitor = fdspawn(connection.fileno(), timeout=_SECONDS)
            monitor.expect_exact(_PROMPT)
            registers = _registers(_ask(monitor, "info registers"))
            if "pc" not in registers:
                return None
            stack = ""
            if "sp" in registers:
                stack = _ask(monitor, f"x /{_STACK_WORDS}wx {registers['sp']:#x}")
    except (OSError, EOF, TIMEOUT):
        return None
    return CpuState(registers, tuple(_words(stack)))


def _connect(folder: Path, name: str) -> socket.socket:
    """Through the directory's descriptor: the path itself may be too long for a socket."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{directory}/{name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(directory)
    return connection


def _ask(monitor: fdspawn, command: str) -> str:
    monitor.send(f"{command}\n".encode())
    monitor.expect_exact(_PROMPT)
    return str(monitor.before.decode("ascii", "replace"))


def _registers(said: str) -> dict[str, int]:
    found = {name.lower(): int(value, 16) for name, value in _REGISTER.findall(said)}
    return {_NAMES.get(name, name): value for name, value in found.items()}


def _words(said: str) -> list[int]:
    """The values of ``x /wx`` lines: "30007f00: 0x00000000 0x10000abd ..."."""
    rows = (line.partition(": ")[2] for line in said.splitlines() if ": 0x" in line)
    return [int(word, 16) for row in rows for word in _WORD.findall(row)]
