"""QEMU's monitor: what it answers, and that one which does not answer costs little."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from harness.sim.monitor import CpuState, cpu_state

REGISTERS = (
    "info registers\r\nR00=00000000 R01=00000001 R02=00000000 R03=00000000\r\n"
    "R12=00000000 R13=30007f00 R14=10000def R15=10000abc\r\nXPSR=61000000 -ZC- T S priv\r\n(qemu) "
)
STACK = "30007f00: 0x00000000 0x10000abd\r\n30007f08: 0xdfdfdfcf 0x00000001\r\n(qemu) "


def serve(folder: Path, *answers: str) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "m"))
    server.listen()

    def talk() -> None:
        connection, _ = server.accept()
        with connection, server:
            for answer in answers:
                connection.sendall(answer.encode())
                if not connection.recv(1000):
                    return

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    return thread


def test_registers_and_stack(tmp_path: Path) -> None:
    serve(tmp_path, "QEMU 7.2 monitor\r\n(qemu) ", REGISTERS, STACK)
    state = cpu_state(tmp_path, "m")
    assert state is not None
    assert (state.registers["pc"], state.registers["lr"]) == (0x10000ABC, 0x10000DEF)
    assert state.stack == (0, 0x10000ABD, 0xDFDFDFCF, 1)


@pytest.mark.parametrize("answers", [(), ("QEMU\r\n(qemu) ",), ("QEMU\r\n(qemu) ", "(qemu) ")])
def test_a_monitor_that_does_not_answer(tmp_path: Path, answers: tuple[str, ...]) -> None:
    serve(tmp_path, *answers)
    assert cpu_state(tmp_path, "m") is None


def test_no_monitor_at_all(tmp_path: Path) -> None:
    assert cpu_state(tmp_path, "m") is None


def test_a_path_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run directories can be deep; the name of a Unix socket has 107 characters at most."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.chdir(deep)
    server = socket.socket(socket.AF_UNIX)
    server.bind("m")
    server.listen()
    server.close()
    assert cpu_state(deep, "m") is None  # found, and refused: not an error of the path
    assert CpuState({"pc": 1}, ()).registers == {"pc": 1}
