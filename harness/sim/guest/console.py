"""Drives a Linux guest on its serial console: log in, run commands one at a time, power off.

The guest's output goes to a record first, byte for byte. Here it is read without the kernel's
messages, which may appear at any time, even in the middle of a line. A failure is reported in a
line that begins with ``MESSAGE_PREFIX``; the log parser (``harness.log``) knows it, so that reading
the record again gives the same verdict.

``LinuxConsole`` does this beside a simulator, in one thread from login to power-off. The guest's
console is a socket of the simulator; its bytes are written into the simulator's output pipe, so
that the record has all output in one order."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.config.target import Limits, Linux
from harness.sim.simulator import Companion, Job

MESSAGE_PREFIX = "hil: "
_READ = 65536
# A kernel's message: "[    1.234567] text" up to the end of its line, whatever stands before it.
_KERNEL = re.compile(rb"\[ {0,4}\d{1,7}\.\d{6}\] [^\n]*\n")
# A possible beginning of one, at the end of the bytes read so far.
_BEGINNING = re.compile(rb"\[(?: {0,4}\d{0,7}(?:\.\d{0,6}(?:\](?: [^\n]*)?)?)?)?\Z")
_LOGIN = rb"\blogin: ?"
_PASSWORD = rb"[Pp]assword: ?"
_REFUSED = rb"Login incorrect"
COMMANDS = "run.sh"


class GuestProblem(Exception):
    """Why the session cannot continue, as a sentence."""


class Closed(Exception):
    """The other end of the console was closed."""


class GuestConsole:
    """``descriptor`` is a connected stream; ``record`` receives all its bytes. Every method raises
    Closed when the other end is closed."""

    def __init__(
        self, descriptor: int, linux: Linux, limits: Limits, record: Callable[[bytes], None]
    ) -> None:
        self._linux = linux
        self._limits = limits
        self._stream = _Stream(descriptor, record)
        self._commands = 0

    def log_in(self) -> None:
        """Raises GuestProblem when the login prompt does not appear or the guest refuses the
        user."""
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
        """Runs a shell command and returns its exit status. The marker of the status is typed in
        two parts, so that its echo does not match. Raises GuestProblem."""
        self._commands += 1
        marker = rf"@hil {self._commands} (\d+)\r*\n".encode()
        self._send(f'{words}; s=$?; echo "@"hil {self._commands} $s')
        self._expect([marker], seconds, f"the end of `{words}`")
        match = self._stream.match
        return int(match[1])

    def power_off(self) -> None:
        """Raises GuestProblem when the guest does not power off in time."""
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
        """The index of the pattern that appeared."""
        try:
            return int(self._stream.expect(patterns, timeout=seconds))
        except TIMEOUT:
            raise GuestProblem(f"the guest did not come to {goal} within {seconds:g} s") from None
        except EOF as error:
            raise Closed from error


class _Stream(fdspawn):  # type: ignore[misc]  # pexpect has no types
    """A descriptor that pexpect reads, without the kernel's messages."""

    def __init__(self, descriptor: int, record: Callable[[bytes], None]) -> None:
        super().__init__(descriptor, maxread=_READ, use_poll=True)
        self._record = record
        self._held = b""  # a possible beginning of a kernel message

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> bytes:
        try:
            data = bytes(super().read_nonblocking(size, timeout))
        except OSError:  # the other end was closed with unread bytes
            raise EOF("the console was closed") from None
        self._record(data)
        text, self._held = without_kernel(self._held + data)
        return text


def without_kernel(data: bytes) -> tuple[bytes, bytes]:
    """``data`` without the kernel's complete messages, and a possible beginning of one."""
    data = _KERNEL.sub(b"", data)
    beginning = _BEGINNING.search(data)
    if beginning is None:
        return data, b""
    return data[: beginning.start()], data[beginning.start() :]


class LinuxConsole(Companion):
    """``status``: the runner's exit status, as the shell reports it."""

    def __init__(self, linux: Linux, job: Job, mount: str) -> None:
        self._linux = linux
        self._limits = job.limits
        self._mount = mount
        self._ours, self._guests = socket.socketpair()
        self._pipe = -1
        self._thread = Thread(target=self._drive, name="console", daemon=True)
        self.descriptors = (self._guests.fileno(),)
        self.words = (
            *("-chardev", f"socket,id=console,fd={self._guests.fileno()}"),
            *("-serial", "chardev:console"),
        )

    def started(self, read_end: int) -> None:
        self._guests.close()
        self._pipe = os.open(f"/proc/self/fd/{read_end}", os.O_WRONLY | os.O_CLOEXEC)
        self._thread.start()

    def close(self) -> None:
        """Call it when the simulator has ended."""
        for end in (self._ours, self._guests):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()
        self._ours.close()
        self._guests.close()

    def _drive(self) -> None:
        try:
            console = GuestConsole(self._ours.fileno(), self._linux, self._limits, self._record)
            console.log_in()
            if console.command(f"cd {self._mount}", self._limits.shell):
                raise GuestProblem(f"the guest has no directory {self._mount}")
            self.status = console.command(f"sh {COMMANDS}", None)
            console.command("sync", self._limits.shell)
            console.power_off()
        except Closed:
            pass  # the simulator has ended; the record shows how
        except GuestProblem as problem:
            self._record(f"\n{MESSAGE_PREFIX}{problem}\n".encode())
        finally:
            os.close(self._pipe)

    def _record(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the reader has ended
            while data:
                data = data[os.write(self._pipe, data) :]


def commands(runner: str, arguments: Sequence[str]) -> bytes:
    """The script that the guest's shell runs: the runner's command line."""
    words = " ".join(_quoted(word) for word in (runner, *arguments[1:]))
    return f"exec {words}\n".encode()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
