"""QEMU's monitor: what it answers, and that one which does not answer costs little."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.sim.monitor import Monitor, cpu_state

REGISTERS = (
    "info registers\r\nR00=00000000 R01=00000001 R02=00000000 R03=00000000\r\n"
    "R12=00000000 R13=30007f00 R14=10000def R15=10000abc\r\nXPSR=61000000 -ZC- T S priv\r\n(qemu) "
)
STACK = "30007f00: 0x00000000 0x10000abd\r\n30007f08: 0xdfdfdfcf 0x00000001\r\n(qemu) "


def serve(monitor: Monitor, *answers: str) -> threading.Thread:
    qemu = socket.socket(fileno=os.dup(monitor.descriptors[0]))
    monitor.started(-1)

    def talk() -> None:
        with qemu:
            for answer in answers:
                qemu.sendall(answer.encode())
                if not qemu.recv(1000):
                    return

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with closing(Monitor()) as monitor:
        yield monitor


def test_registers_and_stack(monitor: Monitor) -> None:
    serve(monitor, "QEMU 7.2 monitor\r\n(qemu) ", REGISTERS, STACK)
    state = cpu_state(monitor)
    assert state is not None
    assert (state.registers["pc"], state.registers["lr"]) == (0x10000ABC, 0x10000DEF)
    assert state.stack == (0, 0x10000ABD, 0xDFDFDFCF, 1)


@pytest.mark.parametrize("answers", [(), ("QEMU\r\n(qemu) ",), ("QEMU\r\n(qemu) ", "(qemu) ")])
def test_a_monitor_that_does_not_answer(monitor: Monitor, answers: tuple[str, ...]) -> None:
    serve(monitor, *answers)
    assert cpu_state(monitor) is None


def test_a_qemu_that_was_not_started(monitor: Monitor) -> None:
    assert cpu_state(monitor) is None
