"""The dialogue with a Linux guest or board on its console: log in, run commands one at a time.

The bytes go to the record first, so that it has all output in one order. Here they are read without
the kernel's messages, which may appear at any time, even in the middle of a line. A failure is
reported in a line that begins with ``MESSAGE_PREFIX``; the log parser (``harness.log``) knows it,
so reading the record again gives the same verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn
from pexpect.spawnbase import SpawnBase

from harness.config.target import Limits, Linux

MESSAGE_PREFIX = "hil: "
_READ = 65536
# A kernel's message: "[    1.234567] text" up to the end of its line, whatever stands before it.
_KERNEL = re.compile(rb"\[ {0,4}\d{1,7}\.\d{6}\] [^\n]*\n")
# A possible beginning of one, at the end of the bytes read so far.
_BEGINNING = re.compile(rb"\[(?: {0,4}\d{0,7}(?:\.\d{0,6}(?:\](?: [^\n]*)?)?)?)?\Z")
_LOGIN = rb"\blogin: ?"
_LOGIN_LINE = rb"\n[\w.-]{1,64} login: \Z"
_PASSWORD = rb"[Pp]assword: ?"
_REFUSED = rb"Login incorrect"


class GuestProblem(Exception):
    """Why the session cannot continue, as a sentence."""


class Closed(Exception):
    """The other end of the console was closed."""


class ConsoleStream(Protocol):
    """A connected stream, as pexpect reads and writes one."""

    def read_nonblocking(self, size: int, timeout: float | None) -> bytes:
        """Read what is there. Raises pexpect's TIMEOUT and EOF."""

    def send(self, data: bytes) -> object: ...


def line_of(descriptor: int) -> ConsoleStream:
    line: ConsoleStream = fdspawn(descriptor, maxread=_READ, use_poll=True)
    return line


class GuestConsole:
    """The console of a Linux guest.

    ``record`` receives all bytes of ``line``. Every method raises Closed when its other end is
    closed."""

    def __init__(
        self, line: ConsoleStream, linux: Linux, limits: Limits, record: Callable[[bytes], None]
    ) -> None:
        self._linux = linux
        self._limits = limits
        self._stream = _Stream(line, record)
        self._commands = 0

    def log_in(self) -> None:
        """Log in. Raises GuestProblem when no prompt appears or the guest refuses the user."""
        user, limits = self._linux.user, self._limits
        self._expect([_LOGIN], limits.boot, "its login prompt")
        self._send(user)
        prompt = re.escape(self._linux.prompt.encode()) + rb"(?:\x1b\[6n)?\Z"
        replies = (_LOGIN, _PASSWORD, _REFUSED, prompt)
        for _ in range(2):  # the first user name may have lost a character
            reply = replies[self._expect([*replies], limits.shell, "its shell's prompt")]
            if reply == prompt:
                return
            if reply != _LOGIN:
                break
            self._send(user)
        raise GuestProblem(f"the guest refuses the login of {user}")

    def command(self, words: str, seconds: float | None) -> int:
        """Run a shell command and return its exit status.

        The marker of the status is typed in two parts, so that its echo does not match. Raises
        GuestProblem, also when the guest asks for a login: it has started again."""
        self._commands += 1
        marker = rf"@hil {self._commands} (\d{{1,3}})\r*\n".encode()
        self._send(f'{words}; s=$?; echo "@"hil {self._commands} $s')
        if self._expect([marker, _LOGIN_LINE], seconds, f"the end of `{words}`"):
            raise GuestProblem(f"the guest began again while it ran `{words}`")
        match = self._stream.match
        return int(match[1])

    def power_off(self) -> None:
        """Power off. Raises GuestProblem when the guest does not in time."""
        self._send("poweroff -f")
        try:
            self._stream.expect([EOF], timeout=self._limits.shell)
        except TIMEOUT:
            raise GuestProblem(
                f"the guest did not power off within {self._limits.shell:g} s"
            ) from None

    def _send(self, words: str) -> None:
        try:
            self._stream.send(f"{words}\r".encode())
        except OSError as error:
            raise Closed from error

    def _expect(self, patterns: list[bytes], seconds: float | None, goal: str) -> int:
        """Return the index of the pattern that appeared."""
        try:
            return int(self._stream.expect(patterns, timeout=seconds))
        except TIMEOUT:
            raise GuestProblem(f"the guest did not come to {goal} within {seconds:g} s") from None
        except EOF as error:
            raise Closed from error


class _Stream(SpawnBase):  # type: ignore[misc]  # pexpect has no types
    """A line that pexpect reads, without the kernel's messages."""

    def __init__(self, line: ConsoleStream, record: Callable[[bytes], None]) -> None:
        super().__init__(maxread=_READ)
        self.send = line.send
        self._line = line
        self._record = record
        self._held = b""  # a possible beginning of a kernel message

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> bytes:
        try:
            data = bytes(self._line.read_nonblocking(size, timeout))
        except OSError:  # the other end was closed with unread bytes
            raise EOF("the console was closed") from None
        self._record(data)
        text, self._held = without_kernel(self._held + data)
        return text


def without_kernel(data: bytes) -> tuple[bytes, bytes]:
    """Split off the kernel's complete messages, and a possible beginning of one."""
    data = _KERNEL.sub(b"", data)
    beginning = _BEGINNING.search(data)
    if beginning is None:
        return data, b""
    return data[: beginning.start()], data[beginning.start() :]
