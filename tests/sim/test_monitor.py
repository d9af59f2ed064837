"""QEMU's monitor: what it answers, and that one which does not answer costs little."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.sim.monitor import Monitor, cpu_state

REGISTERS = (
    "R00=00000000 R01=00000001 R02=00000000 R03=00000000\r\n"
    "R12=00000000 R13=30007f00 R14=10000def R15=10000abc\r\nXPSR=61000000 -ZC- T S priv\r\n"
)
STACK = "30007f00: 0x00000000 0x10000abd\r\n30007f08: 0xdfdfdfcf 0x00000001\r\n"
GREETING = {"QMP": {"version": {}}}


def serve(monitor: Monitor, *answers: object) -> threading.Thread:
    """A QEMU that greets, and answers each command with the next value, behind an event."""
    qemu = socket.socket(fileno=os.dup(monitor.descriptors[0]))
    monitor.started(-1)

    def talk() -> None:
        with qemu:
            qemu.sendall(json.dumps(GREETING).encode() + b"\r\n")
            for answer in ({}, *answers):
                asked = qemu.recv(1000)
                if not asked:
                    return
                event, returned = (
                    {"event": "RESET"},
                    {"return": answer, "id": json.loads(asked)["id"]},
                )
                for said in (event, returned):
                    qemu.sendall(json.dumps(said).encode() + b"\r\n")
            qemu.recv(1000)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with closing(Monitor(starts_guest=False)) as monitor:
        yield monitor


def test_registers_and_stack(monitor: Monitor) -> None:
    serve(monitor, REGISTERS, STACK)
    state = cpu_state(monitor)
    assert state is not None
    assert (state.registers["pc"], state.registers["lr"]) == (0x10000ABC, 0x10000DEF)
    assert state.stack == (0, 0x10000ABD, 0xDFDFDFCF, 1)


def test_instructions_that_icount_has_counted(monitor: Monitor) -> None:
    serve(monitor, {"mode": "none", "icount": 123456789}, {"mode": "none"})
    assert monitor.instructions() == 123456789
    assert monitor.instructions() == 0


@pytest.mark.parametrize("answers", [(), ("",), ({"no": "text"},)])
def test_a_monitor_that_does_not_answer(monitor: Monitor, answers: tuple[object, ...]) -> None:
    serve(monitor, *answers)
    assert cpu_state(monitor) is None
    assert monitor.instructions() == 0


def test_a_qemu_that_was_not_started(monitor: Monitor) -> None:
    assert cpu_state(monitor) is None
