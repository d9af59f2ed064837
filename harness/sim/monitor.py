"""Ask QEMU's monitor, over a connection that it inherits: QMP, and through it the monitor for
people. QEMU 7.2: "info registers", "x", and query-replay, which has the instructions that -icount
has counted whether or not a replay is recorded (replay/replay-debugging.c)."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass
from typing import Any

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.sim.simulator import Companion

_NEGOTIATE = "qmp_capabilities"  # before any other command
_SECONDS = 0.5  # for each answer; a run that hangs shall not make us hang
_REGISTER = re.compile(r"\b(R\d{2}|XPSR|PC|X\d{2}|SP)=([0-9a-f]{8,16})\b")
_WORD = re.compile(r"0x([0-9a-f]{8})\b")
_STACK_WORDS = 256
_NAMES = {"r15": "pc", "r14": "lr", "r13": "sp"}


@dataclass(frozen=True)
class WaitingThread:
    """A thread of Zephyr's that waits for an object of the kernel. ``holder``: of a mutex."""

    name: str
    waits_for: str
    holder: str | None
    stack: tuple[int, ...]


@dataclass(frozen=True)
class CpuState:
    """Registers by name ("pc", "lr", "sp", "r00"...) and the words the stack pointer points to.
    ``silent``: instructions since it last said something, where that ended the run."""

    registers: dict[str, int]
    stack: tuple[int, ...]
    silent: int | None = None
    threads: tuple[WaitingThread, ...] = ()


class Monitor(Companion):
    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._answers = fdspawn(self._near.fileno(), timeout=_SECONDS)
        self._asked = 0
        self.descriptors = (self._far.fileno(),)
        self.words = (
            *("-chardev", f"socket,id=monitor,fd={self._far.fileno()}"),
            *("-mon", "chardev=monitor,mode=control"),
        )

    def started(self, read_end: int) -> None:
        self._far.close()

    def ask(self, command: str) -> str:
        """What the monitor for people answers; "" when it does not come in time."""
        said = self._execute("human-monitor-command", {"command-line": command})
        return said if isinstance(said, str) else ""

    def memory(self, address: int, count: int) -> tuple[int, ...]:
        """Words of the guest's memory; fewer, or none, where it cannot be read."""
        return tuple(words_of(self.ask(f"x /{count}wx {address:#x}")))

    def instructions(self) -> int:
        """Executed so far; 0 where they are not counted, or the answer does not come in time."""
        replay = self._execute("query-replay", {})
        return int(replay.get("icount", 0)) if isinstance(replay, dict) else 0

    def _execute(self, command: str, arguments: dict[str, str]) -> Any:
        """What a command of QMP returns; None when it is refused or not answered in time."""
        if self._asked == 0 and command != _NEGOTIATE:
            self._execute(_NEGOTIATE, {})
        self._asked += 1
        request = {"execute": command, "arguments": arguments, "id": self._asked}
        try:
            self._answers.send(json.dumps(request).encode())
            while True:  # the greeting, events and answers that came too late
                self._answers.expect_exact(b"\n")
                answer = json.loads(self._answers.before)
                if answer.get("id") == self._asked:
                    return answer.get("return")
        except (OSError, EOF, TIMEOUT, ValueError):
            return None

    def close(self) -> None:
        self._near.close()
        self._far.close()


def cpu_state(monitor: Monitor, silent: int | None = None) -> CpuState | None:
    """What the CPU does right now; None when the monitor does not answer in time."""
    registers = _registers(monitor.ask("info registers"))
    if "pc" not in registers:
        return None
    stack = monitor.ask(f"x /{_STACK_WORDS}wx {registers['sp']:#x}") if "sp" in registers else ""
    return CpuState(registers, tuple(words_of(stack)), silent)


def _registers(said: str) -> dict[str, int]:
    found = {name.lower(): int(value, 16) for name, value in _REGISTER.findall(said)}
    return {_NAMES.get(name, name): value for name, value in found.items()}


def words_of(said: str) -> list[int]:
    """The values of ``x /wx`` lines: "30007f00: 0x00000000 0x10000abd ..."."""
    rows = (line.partition(": ")[2] for line in said.splitlines() if ": 0x" in line)
    return [int(word, 16) for row in rows for word in _WORD.findall(row)]
