"""The doorbell's host side against a guest that this test plays: real FIFOs, real shared memory."""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import sizeof
from pathlib import Path

import pytest

from harness.npu.doorbell import (
    ANSWER_FIFO,
    REQUEST_FIFO,
    STATUS_END,
    STATUS_IRQ,
    STATUS_PARSE_ERROR,
    Mailbox,
    NpuIdentity,
    Outcome,
    Result,
    Ring,
    Run,
    SharedMemory,
    answering,
    serving,
)

HEADER = Path(__file__).parents[2] / "targets" / "runner" / "ethosu" / "doorbell.h"
BASE = 0x60000000
SIZE = 1 << 16
MAILBOX = BASE + 0x100
COMMANDS = BASE + 0x1000
SCRATCH = BASE + 0x2000
IDENTITY = NpuIdentity(config=0x1807, id=0x10066001)


class Guest:
    """What the firmware does, in the memory that QEMU would have for its RAM."""

    def __init__(self, work: Path, memory: SharedMemory) -> None:
        self.memory = memory
        self._answer = os.open(work / ANSWER_FIFO, os.O_RDONLY)
        self.request = os.open(work / REQUEST_FIFO, os.O_WRONLY)
        self._sequence = 0

    def close(self) -> None:
        os.close(self.request)
        os.close(self._answer)

    def write(self, address: int, data: bytes) -> None:
        os.pwrite(self.memory.descriptor, data, address - BASE)

    def read(self, address: int, size: int) -> bytes:
        return os.pread(self.memory.descriptor, size, address - BASE)

    def ring(self, magic: int = 0x474E4952, mailbox: int = MAILBOX) -> bytes:
        self._sequence += 1
        os.write(self.request, struct.pack("<IIQ", magic, self._sequence, mailbox))
        return os.read(self._answer, 4)

    def ask(
        self,
        command: int,
        commands: tuple[int, int] = (COMMANDS, 16),
        regions: Sequence[tuple[int, int]] = (),
        *,
        version: int = 1,
        count: int | None = None,
    ) -> tuple[int, int, int, int, int, str]:
        """Fill in the mailbox, ring, and read result, config, id, status, qread and message."""
        self.fill(command, commands, regions, version=version, count=count)
        assert self.ring() == struct.pack("<I", self._sequence)
        answer = self.read(MAILBOX, 384)
        result, config, id_, status, qread = struct.unpack_from("<5I", answer, 12)
        assert struct.unpack_from("<Q", answer, 184) == (0,)  # results, not time
        return result, config, id_, status, qread, answer[192:].split(b"\0")[0].decode()

    def fill(
        self,
        command: int,
        commands: tuple[int, int] = (COMMANDS, 16),
        regions: Sequence[tuple[int, int]] = (),
        *,
        version: int = 1,
        count: int | None = None,
    ) -> None:
        box = struct.pack("<4I", 0x55504E48, version, command, Result.REFUSED).ljust(32, b"\0")
        box += struct.pack("<QQII", *commands, len(regions) if count is None else count, 0)
        box += b"".join(struct.pack("<QQ", *region) for region in regions)
        self.write(MAILBOX, box.ljust(384, b"\xee"))


@contextmanager
def guest(tmp_path: Path, run: Run) -> Iterator[Guest]:
    with SharedMemory(SIZE, BASE) as memory, serving(tmp_path, memory, IDENTITY, run):
        one = Guest(tmp_path, memory)
        try:
            yield one
        finally:
            one.close()
    assert not (tmp_path / REQUEST_FIFO).exists()


def adder(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
    """A fake NPU: adds the first byte of its command stream to every byte of its scratch."""
    scratch = regions[1]
    assert scratch is not None
    for index, value in enumerate(scratch):
        scratch[index] = (value + commands[0]) & 0xFF
    return Outcome()


def test_identify_says_which_npu(tmp_path: Path) -> None:
    with guest(tmp_path, adder) as one:
        assert one.ask(1)[:3] == (Result.OK, 0x1807, 0x10066001)


def test_run_works_in_the_guests_memory(tmp_path: Path) -> None:
    """Weights are absent (size 0), scratch is changed in place, nothing around it is."""
    with guest(tmp_path, adder) as one:
        one.write(COMMANDS, bytes([3]) * 16)
        one.write(SCRATCH, bytes(range(6)))
        for _ in range(2):
            result, _, _, status, _, _ = one.ask(2, regions=[(0, 0), (SCRATCH + 1, 4), (0, 0)])
            assert (result, status) == (Result.OK, STATUS_IRQ | STATUS_END)
        assert one.read(SCRATCH, 6) == bytes([0, 7, 8, 9, 10, 5])


def test_a_fault_reaches_the_guest(tmp_path: Path) -> None:
    fault = Outcome(Result.FAULT, "é" * 200, status=STATUS_IRQ | STATUS_PARSE_ERROR, qread=12)
    with guest(tmp_path, lambda commands, regions: fault) as one:
        result, _, _, status, qread, message = one.ask(2)
        assert (result, status, qread) == (Result.FAULT, fault.status, 12)
        assert message == "é" * 95  # cut at a whole character


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"command": 3}, "unknown command 3"),
        ({"command": 2, "version": 2}, "version 2; expected 1"),
        ({"command": 2, "count": 9}, "9 regions; at most 8"),
        ({"command": 2, "commands": (BASE - 16, 16)}, "16 bytes at 0x5ffffff0 lie outside"),
        ({"command": 2, "commands": (BASE + SIZE - 8, 16)}, "lie outside the shared memory"),
        ({"command": 2, "regions": [(SCRATCH, 1 << 40)]}, "lie outside the shared memory"),
        ({"command": 2, "regions": [((1 << 64) - 1, 16)]}, "lie outside the shared memory"),
    ],
)
def test_requests_that_are_refused(
    tmp_path: Path, request_: dict[str, object], reason: str
) -> None:
    """The NPU is not asked, and the guest is told why."""

    def unused(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        raise AssertionError("must not run")

    with guest(tmp_path, unused) as one:
        result, *_, message = one.ask(**request_)  # type: ignore[arg-type]
        assert result == Result.REFUSED
        assert reason in message


def test_a_mailbox_outside_the_memory_is_answered_but_not_written(tmp_path: Path) -> None:
    with guest(tmp_path, adder) as one:
        assert one.ring(mailbox=BASE + SIZE - 100) == struct.pack("<I", 1)
        assert one.read(BASE, SIZE) == bytes(SIZE)


def test_a_wrong_ring_ends_the_service(tmp_path: Path) -> None:
    """The guest reads an end of file and says that nobody answers; it does not hang."""
    with guest(tmp_path, adder) as one:
        assert one.ring(magic=1) == b""


def test_an_error_of_the_npu_is_ours_not_a_hang(tmp_path: Path) -> None:
    def broken(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        raise ZeroDivisionError("planted")

    def use() -> None:
        with guest(tmp_path, broken) as one:
            one.fill(2)
            assert one.ring() == b""

    with pytest.raises(ZeroDivisionError, match="planted"):
        use()


def test_a_guest_that_never_comes_keeps_nobody(tmp_path: Path) -> None:
    with SharedMemory(SIZE) as memory, serving(tmp_path, memory, IDENTITY, adder):
        pass


def test_nobody_makes_the_memory_shorter(tmp_path: Path) -> None:
    """Whoever cut it under a mapping would end with SIGBUS everybody who reads there."""
    with guest(tmp_path, adder) as one:
        for attempt in (lambda fd: os.ftruncate(fd, 0), lambda fd: os.ftruncate(fd, SIZE * 2)):
            again = os.open(one.memory.path, os.O_RDWR)
            with pytest.raises(PermissionError):
                attempt(again)
            os.close(again)
        with pytest.raises(PermissionError):
            os.open(one.memory.path, os.O_RDWR | os.O_TRUNC)
        assert one.ask(1)[0] == Result.OK


def test_fifos_that_the_guest_moves_are_no_error_of_ours(tmp_path: Path) -> None:
    with guest(tmp_path, adder) as one:
        (tmp_path / REQUEST_FIFO).rename(tmp_path / "other")
        (tmp_path / ANSWER_FIFO).unlink()
        assert one.ask(1)[0] == Result.OK


def test_a_guest_that_reads_no_answer_keeps_nobody(tmp_path: Path) -> None:
    """Its FIFO is full at some time; the service ends instead of waiting for ever."""
    with guest(tmp_path, adder) as one:
        for sequence in range(1 << 15):
            try:
                os.write(one.request, struct.pack("<IIQ", 0x474E4952, sequence, MAILBOX))
            except BrokenPipeError:
                break
        else:
            pytest.fail("it took every ring")


@pytest.mark.parametrize("unread", [True, False])
def test_a_line_that_is_cut_during_a_job(unread: bool) -> None:
    """A socket, whose other end goes with its guest while the NPU is at work, an answer unread or
    not: nobody is left to answer, which is nobody's fault."""
    ours, guests = socket.socketpair()
    ours.setblocking(False)

    def cut(*_: object) -> Outcome:
        guests.close()
        return Outcome()

    with SharedMemory(SIZE, BASE) as memory:
        ends = os.dup(ours.fileno()), os.dup(ours.fileno())
        with answering(*ends, memory, IDENTITY, cut):
            box = struct.pack("<4I", 0x55504E48, 1, 1, 0).ljust(384, b"\0")
            os.pwrite(memory.descriptor, box, MAILBOX - BASE)
            guests.send(struct.pack("<IIQ", 0x474E4952, 1, MAILBOX))
            while unread and not select.select([guests], [], [], 5)[0]:
                pass
            if not unread:
                assert guests.recv(4) == b"\1\0\0\0"
            struct.pack_into("<I", memory.at(MAILBOX, 12), 8, 2)
            memory.at(MAILBOX + 32, 24)[:] = struct.pack("<QQII", COMMANDS, 16, 0, 0)
            guests.send(struct.pack("<IIQ", 0x474E4952, 2, MAILBOX))
            while guests.fileno() >= 0:
                time.sleep(0.001)
    ours.close()


def test_where_a_view_lies() -> None:
    with SharedMemory(SIZE, BASE) as memory:
        assert memory.offset(memory.at(BASE + 0x123, 7)) == 0x123
        assert memory.offset(memoryview(bytearray(7))) is None


def test_both_sides_have_one_format() -> None:
    """The offsets that doorbell.h documents are those of the host's structures."""
    header = HEADER.read_text()
    documented = dict(re.findall(r"(\w+)(?:\[\w+\])?;\s+// (\d+)\s", header))
    ours = {name: getattr(Mailbox, name).offset for name, _ in Mailbox._fields_}
    assert ours == {name: int(offset) for name, offset in documented.items()}
    assert (sizeof(Ring), sizeof(Mailbox)) == (16, 384)
    for constant in ('"npu-request"', '"npu-answer"', "0x474E4952", "0x55504E48", "= 384"):
        assert constant in header
