"""The talk, with a guest that a test plays: what it answers, loses and mixes up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from harness.config.target import Limits, Linux
from harness.sim.guest.console import (
    Closed,
    GuestConsole,
    GuestProblem,
    line_of,
    without_kernel,
)

LINUX = Linux(hostname="board", prompt="# ")
LIMITS = Limits(host=5.0, stall=5.0, boot=5.0, shell=5.0)
SHORT = Limits(host=5.0, stall=5.0, boot=0.3, shell=0.3)


class Guest:
    """The other end. ``hear`` gives what was typed up to a carriage return."""

    def __init__(self) -> None:
        self.ours, self.its = socket.socketpair()
        self.record = bytearray()
        self._heard = b""

    def say(self, data: bytes) -> None:
        self.its.sendall(data)

    def hear(self) -> bytes:
        while b"\r" not in self._heard:
            data = self.its.recv(4096)
            if not data:
                return b""
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\r")
        return line

    def console(self, limits: Limits = LIMITS) -> GuestConsole:
        return GuestConsole(line_of(self.ours.fileno()), LINUX, limits, self.record.extend)


@pytest.fixture
def guest() -> Iterator[Guest]:
    made = Guest()
    yield made
    for end in (made.ours, made.its):
        end.close()


def playing(act: Callable[[], None]) -> Thread:
    thread = Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_login_and_commands(guest: Guest) -> None:
    """With the line ends of a terminal behind a terminal, the query of busybox's shell for the
    cursor, and the echo of all that is typed. What was said is recorded to the byte."""
    said = [
        b"[    0.000000] Linux version 6.1.0\r\n\r\r\nboard login: ",
        b"root\r\r\n\r\n~ # \x1b[6n",
        b'sh run.sh; s=$?; echo "@"hil 1 $s\r\r\nhello\r\r\n@hil 1 42\r\r\n~ # \x1b[6n',
    ]

    def act() -> None:
        guest.say(said[0])
        assert guest.hear() == b"root"
        guest.say(said[1])
        assert guest.hear() == b'sh run.sh; s=$?; echo "@"hil 1 $s'
        guest.say(said[2])

    thread = playing(act)
    console = guest.console()
    console.log_in()
    assert console.command("sh run.sh", None) == 42
    thread.join()
    assert bytes(guest.record) == b"".join(said)[: len(guest.record)]
    assert b"hello" in guest.record


def test_a_kernel_that_speaks_within_the_answer(guest: Guest) -> None:
    """In the middle of the sentinel, in pieces, and more than once."""

    def act() -> None:
        guest.hear()
        for piece in (
            b"@hi[   12.345",
            b"678] random: crng",
            b" init done\r\n[   12.400000] more\r\nl 1",
            b" 0\r\n",
        ):
            guest.say(piece)

    playing(act)
    assert guest.console().command("true", 5.0) == 0


def test_a_first_character_that_was_lost(guest: Guest) -> None:
    """The guest asks again, and is answered again."""

    def act() -> None:
        guest.say(b"board login: ")
        guest.hear()
        guest.say(b"oot\r\n\r\nboard login: ")
        assert guest.hear() == b"root"
        guest.say(b"\r\n# ")

    playing(act)
    guest.console().log_in()


@pytest.mark.parametrize("answer", [b"Password: ", b"\r\nLogin incorrect\r\nboard login: "])
def test_a_login_that_is_refused(guest: Guest, answer: bytes) -> None:
    def act() -> None:
        guest.say(b"board login: ")
        guest.hear()
        guest.say(answer)

    playing(act)
    with pytest.raises(GuestProblem, match="refuses the login of root"):
        guest.console().log_in()


def test_a_guest_that_says_nothing(guest: Guest) -> None:
    with pytest.raises(GuestProblem, match=r"did not come to its login prompt within 0\.3 s"):
        guest.console(SHORT).log_in()
    with pytest.raises(GuestProblem, match=r"did not come to the end of `sync` within 0\.3 s"):
        guest.console(SHORT).command("sync", 0.3)
    with pytest.raises(GuestProblem, match=r"did not power off within 0\.3 s"):
        guest.console(SHORT).power_off()


def test_a_console_that_closes(guest: Guest) -> None:
    """Whether something was left unread in it or not."""
    guest.its.close()
    with pytest.raises(Closed):
        guest.console().log_in()


def test_powering_off_ends_the_talk(guest: Guest) -> None:
    def act() -> None:
        assert guest.hear() == b"poweroff -f"
        guest.its.shutdown(socket.SHUT_RDWR)

    playing(act)
    guest.console().power_off()


@pytest.mark.parametrize(
    ("data", "text", "held"),
    [
        (b"a[    1.000000] m\nb", b"ab", b""),
        (b"a[    1.000000] m", b"a", b"[    1.000000] m"),
        (b"a[", b"a", b"["),
        (b"[0] = 4.000000\n", b"[0] = 4.000000\n", b""),
        (b"I [executorch:a.cpp:1] x", b"I [executorch:a.cpp:1] x", b""),
    ],
)
def test_what_is_the_kernels(data: bytes, text: bytes, held: bytes) -> None:
    assert without_kernel(data) == (text, held)
