"""The talk with a Linux guest on its serial console: log in, run commands one at a time, power off.

What the guest says goes, byte for byte, to a record first; here it is read without the kernel's
messages, which come when they like, also in the middle of a line. What is wrong is said in a
sentence of ours that begins with ``SAYS``; the grammar of logs knows it (``harness.log``), so
that the verdict is the same when the record is read again.

``LinuxConsole`` does it beside a simulator: one thread, from the login to the power-off. The
guest's console is a socket of the simulator's; what comes from it is put into the pipe that the
simulator writes to, so that the record has all that was said, in one order.
"""

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

SAYS = "hil: "
_READ = 65536
# A kernel's message: "[    1.234567] text" up to the end of its line, whatever stands before it.
_KERNEL = re.compile(rb"\[ {0,4}\d{1,7}\.\d{6}\] [^\n]*\n")
# What may be the beginning of one, at the end of what has been read.
_BEGINNING = re.compile(rb"\[(?: {0,4}\d{0,7}(?:\.\d{0,6}(?:\](?: [^\n]*)?)?)?)?\Z")
_LOGIN = rb"\blogin: ?"
_PASSWORD = rb"[Pp]assword: ?"
_REFUSED = rb"Login incorrect"
COMMANDS = "run.sh"


class Trouble(Exception):
    """Why the talk cannot go on, in a sentence of ours."""


class Closed(Exception):
    """The other end of the console went."""


class GuestConsole:
    """``descriptor`` is a connected stream; ``record`` is given all that comes from it. Everything
    raises Closed when its other end goes."""

    def __init__(
        self, descriptor: int, linux: Linux, limits: Limits, record: Callable[[bytes], None]
    ) -> None:
        self._linux = linux
        self._limits = limits
        self._stream = _Stream(descriptor, record)
        self._asked = 0

    def log_in(self) -> None:
        """Raises Trouble when the guest does not get so far, or refuses the user."""
        user, limits = self._linux.user, self._limits
        self._expect([_LOGIN], limits.boot, "its login prompt")
        self._send(user)
        prompt = re.escape(self._linux.prompt.encode()) + rb"(?:\x1b\[6n)?\Z"
        asks = (_LOGIN, _PASSWORD, _REFUSED, prompt)
        for _ in range(2):  # of the first answer a character may have been lost
            found = asks[self._expect([*asks], limits.shell, "its shell's prompt")]
            if found == prompt:
                return
            if found != _LOGIN:
                break
            self._send(user)
        raise Trouble(f"the guest refuses the login of {user}")

    def command(self, words: str, seconds: float | None) -> int:
        """The exit status of a shell command. The words that carry it are typed in two parts, so
        that their echo is not taken for them. Raises Trouble."""
        self._asked += 1
        said = rf"@hil {self._asked} (\d+)\r*\n".encode()
        self._send(f'{words}; s=$?; echo "@"hil {self._asked} $s')
        self._expect([said], seconds, f"the end of `{words}`")
        match = self._stream.match
        return int(match[1])

    def power_off(self) -> None:
        """Raises Trouble when it does not."""
        self._send("poweroff -f")
        try:
            self._stream.expect([EOF], timeout=self._limits.shell)
        except TIMEOUT:
            raise Trouble(f"the guest did not power off within {self._limits.shell:g} s") from None

    def _send(self, words: str) -> None:
        try:
            self._stream.send(f"{words}\r".encode())
        except OSError as error:
            raise Closed from error

    def _expect(self, patterns: list[bytes], seconds: float | None, what: str) -> int:
        """Which of the patterns came."""
        try:
            return int(self._stream.expect(patterns, timeout=seconds))
        except TIMEOUT:
            raise Trouble(f"the guest did not come to {what} within {seconds:g} s") from None
        except EOF as error:
            raise Closed from error


class _Stream(fdspawn):  # type: ignore[misc]  # pexpect has no types
    """A descriptor that pexpect reads, without the kernel's messages."""

    def __init__(self, descriptor: int, record: Callable[[bytes], None]) -> None:
        super().__init__(descriptor, maxread=_READ, use_poll=True)
        self._record = record
        self._held = b""  # of what may become a message of the kernel

    def read_nonblocking(self, size: int = 1, timeout: float | None = -1) -> bytes:
        try:
            data = bytes(super().read_nonblocking(size, timeout))
        except OSError:  # the other end went with something unread
            raise EOF("the console was closed") from None
        self._record(data)
        text, self._held = without_kernel(self._held + data)
        return text


def without_kernel(data: bytes) -> tuple[bytes, bytes]:
    """``data`` without whole messages of the kernel, and what may be the beginning of one."""
    data = _KERNEL.sub(b"", data)
    beginning = _BEGINNING.search(data)
    if beginning is None:
        return data, b""
    return data[: beginning.start()], data[beginning.start() :]


class LinuxConsole(Companion):
    """``status`` is what the shell said that the runner ended with."""

    def __init__(self, linux: Linux, job: Job, mount: str) -> None:
        self._linux = linux
        self._limits = job.limits
        self._mount = mount
        self._ours, self._guests = socket.socketpair()
        self._pipe = -1
        self._thread = Thread(target=self._talk, name="console", daemon=True)
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
        """When the simulator has ended."""
        for end in (self._ours, self._guests):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()
        self._ours.close()
        self._guests.close()

    def _talk(self) -> None:
        try:
            console = GuestConsole(self._ours.fileno(), self._linux, self._limits, self._record)
            console.log_in()
            if console.command(f"cd {self._mount}", self._limits.shell):
                raise Trouble(f"the guest has no directory {self._mount}")
            self.status = console.command(f"sh {COMMANDS}", None)
            console.command("sync", self._limits.shell)
            console.power_off()
        except Closed:
            pass  # the simulator has ended, or was ended; whoever reads the record sees how
        except Trouble as trouble:
            self._record(f"\n{SAYS}{trouble}\n".encode())
        finally:
            os.close(self._pipe)

    def _record(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # nobody reads any more
            while data:
                data = data[os.write(self._pipe, data) :]


def commands(runner: str, arguments: Sequence[str]) -> bytes:
    """The file that the guest's shell is given: the runner's command line."""
    words = " ".join(_quoted(word) for word in (runner, *arguments[1:]))
    return f"exec {words}\n".encode()


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
