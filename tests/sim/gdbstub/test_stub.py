"""The conversation with QEMU's debugger interface, the other end played by the test."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from harness.sim.gdbstub.stub import Stub, StubError, TargetEnded


@pytest.fixture
def ends() -> Iterator[tuple[Stub, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield Stub(near), far


def packet(text: bytes) -> bytes:
    return b"+$%b#%02x" % (text, sum(text) & 0xFF)


def test_a_status_counts_although_qemu_is_gone_already(ends: tuple[Stub, socket.socket]) -> None:
    """QEMU says W and exits; nobody takes our acknowledgement any more."""
    stub, far = ends

    def end() -> None:
        far.recv(100)
        far.shutdown(socket.SHUT_RD)
        far.sendall(packet(b"W86"))

    qemu = Thread(target=end)
    qemu.start()
    with pytest.raises(TargetEnded) as ended:
        stub.resume()
    qemu.join()
    assert ended.value.status == 0x86


@pytest.mark.parametrize("reply", [b"X0b", b""])
def test_another_end_has_no_status(ends: tuple[Stub, socket.socket], reply: bytes) -> None:
    stub, far = ends
    far.sendall(packet(reply))
    with pytest.raises(TargetEnded) as ended:
        stub.resume()
    assert ended.value.status is None


def test_a_broken_line_is_the_end(ends: tuple[Stub, socket.socket]) -> None:
    stub, far = ends
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(TargetEnded):
        stub.register(0)


def test_a_refusal_is_an_error(ends: tuple[Stub, socket.socket]) -> None:
    stub, far = ends
    far.sendall(packet(b"E22"))
    with pytest.raises(StubError, match="QEMU's debugger interface: p0 was answered 'E22'"):
        stub.register(0)
