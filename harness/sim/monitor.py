"""Ask QEMU's human monitor, over a connection that it inherits. QEMU 7.2: "info registers", "x"."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.sim.launch import Companion

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


class Monitor(Companion):
    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._answers = fdspawn(self._near.fileno(), timeout=_SECONDS)
        self._greeted = False
        self.descriptors = (self._far.fileno(),)
        self.words = (
            *("-chardev", f"socket,id=monitor,fd={self._far.fileno()}"),
            *("-mon", "chardev=monitor"),
        )

    def started(self, read_end: int) -> None:
        self._far.close()

    def ask(self, command: str) -> str:
        """The answer; "" when it does not come in time."""
        try:
            if not self._greeted:
                self._answers.expect_exact(_PROMPT)
                self._greeted = True
            self._answers.send(f"{command}\n".encode())
            self._answers.expect_exact(_PROMPT)
        except (OSError, EOF, TIMEOUT):
            return ""
        return str(self._answers.before.decode("ascii", "replace"))

    def close(self) -> None:
        self._near.close()
        self._far.close()


def cpu_state(monitor: Monitor) -> CpuState | None:
    """What the CPU does right now; None when the monitor does not answer in time."""
    registers = _registers(monitor.ask("info registers"))
    if "pc" not in registers:
        return None
    stack = monitor.ask(f"x /{_STACK_WORDS}wx {registers['sp']:#x}") if "sp" in registers else ""
    return CpuState(registers, tuple(words_of(stack)))


def _registers(said: str) -> dict[str, int]:
    found = {name.lower(): int(value, 16) for name, value in _REGISTER.findall(said)}
    return {_NAMES.get(name, name): value for name, value in found.items()}


def words_of(said: str) -> list[int]:
    """The values of ``x /wx`` lines: "30007f00: 0x00000000 0x10000abd ..."."""
    rows = (line.partition(": ")[2] for line in said.splitlines() if ": 0x" in line)
    return [int(word, 16) for row in rows for word in _WORD.findall(row)]
