"""Queries QEMU's monitor over an inherited connection: QMP, and through it the human monitor.

QEMU 7.2: "info registers", "x", and query-replay, which has the instructions counted by -icount
even when no replay is recorded (replay/replay-debugging.c)."""

from __future__ import annotations

import json
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.sim.simulator import Companion

_NEGOTIATE = "qmp_capabilities"  # before any other command
_RUNS = "RESUME"
_SECONDS = 0.5  # for each answer: a hanging QEMU must not block the harness
_REGISTER = re.compile(r"\b(R\d{2}|XPSR|PC|X\d{2}|SP)=([0-9a-f]{8,16})\b")
_WORD = re.compile(r"0x([0-9a-f]{8})\b")
_STACK_WORDS = 256
_NAMES = {"r15": "pc", "r14": "lr", "r13": "sp"}


@dataclass(frozen=True)
class WaitingThread:
    """A Zephyr thread that waits for a kernel object. ``holder``: of a mutex."""

    name: str
    waits_for: str
    holder: str | None
    stack: tuple[int, ...]


@dataclass(frozen=True)
class CpuState:
    """Registers by name ("pc", "lr", "sp", "r00"...) and the words the stack pointer points to.

    ``silent``: instructions since its last output, if that limit ended the run."""

    registers: dict[str, int]
    stack: tuple[int, ...]
    silent: int | None = None
    threads: tuple[WaitingThread, ...] = ()


class Monitor(Companion):
    """QEMU's monitor.

    ``starts_guest`` False: another companion does. QEMU emits RESUME before the guest's first
    instruction (softmmu/cpus.c, vm_prepare_start), to a monitor that has negotiated."""

    def __init__(self, starts_guest: bool = True) -> None:
        self.starts_guest = starts_guest
        self._near, self._far = socket.socketpair()
        self._answers = fdspawn(self._near.fileno(), timeout=_SECONDS)
        self._requests = 0
        self.descriptors = (self._far.fileno(),)
        self.words = (
            *("-chardev", f"socket,id=monitor,fd={self._far.fileno()}"),
            *("-mon", "chardev=monitor,mode=control"),
            *(("-S",) if starts_guest else ()),
        )

    def started(self, read_end: int) -> None:
        self._far.close()
        if self.starts_guest:
            self.began = False
            for command in (_NEGOTIATE, "cont"):
                self._send(command, {})

    def ask(self, command: str) -> str:
        """Return the human monitor's answer; "" when it does not come in time."""
        answer = self._execute("human-monitor-command", {"command-line": command})
        return answer if isinstance(answer, str) else ""

    def memory(self, address: int, count: int) -> tuple[int, ...]:
        """Words of the guest's memory; fewer or none if it cannot be read."""
        return tuple(words_of(self.ask(f"x /{count}wx {address:#x}")))

    def instructions(self) -> int:
        """Return the number executed so far; 0 if it is not counted or the answer is late."""
        replay = self._execute("query-replay", {})
        return int(replay.get("icount", 0)) if isinstance(replay, dict) else 0

    def _execute(self, command: str, arguments: dict[str, str]) -> Any:
        """Return the result of a QMP command; None when it is refused or not answered in time."""
        if self._requests == 0 and command != _NEGOTIATE:
            self._execute(_NEGOTIATE, {})
        self._send(command, arguments)
        try:
            while True:  # the greeting, events and answers that came too late
                answer = self._next()
                if answer.get("id") == self._requests:
                    return answer.get("return")
        except (OSError, EOF, TIMEOUT, ValueError):
            return None

    def _send(self, command: str, arguments: dict[str, str]) -> None:
        self._requests += 1
        request = {"execute": command, "arguments": arguments, "id": self._requests}
        with suppress(OSError):  # it ended
            self._answers.send(json.dumps(request).encode())

    def _next(self) -> dict[str, Any]:
        self._answers.expect_exact(b"\n")
        answer = json.loads(self._answers.before)
        if not isinstance(answer, dict):
            raise ValueError(answer)
        if answer.get("event") == _RUNS:
            self.began = True
        return answer

    def close(self) -> None:
        """Call it when QEMU has ended."""
        self._far.close()
        with suppress(OSError, EOF, TIMEOUT, ValueError):
            while self.began is False:
                self._next()
        self._near.close()


def cpu_state(monitor: Monitor, silent: int | None = None) -> CpuState | None:
    """Return the CPU's current state; None when the monitor does not answer in time."""
    values = _REGISTER.findall(monitor.ask("info registers"))
    named = {name.lower(): int(value, 16) for name, value in values}
    registers = {_NAMES.get(name, name): value for name, value in named.items()}
    if "pc" not in registers:
        return None
    stack = monitor.memory(registers["sp"], _STACK_WORDS) if "sp" in registers else ()
    return CpuState(registers, stack, silent)


def words_of(text: str) -> list[int]:
    """Return the values of ``x /wx`` lines: "30007f00: 0x00000000 0x10000abd ..."."""
    rows = (line.partition(": ")[2] for line in text.splitlines() if ": 0x" in line)
    return [int(word, 16) for row in rows for word in _WORD.findall(row)]
