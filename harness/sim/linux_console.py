"""The talk with a Linux guest beside its simulator: one thread, from the login to the power-off.

The guest's console is a socket of the simulator's. What comes from it is put into the pipe that
the simulator writes to, so that the record has all that was said, in one order.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread

from harness.config.model import Linux
from harness.sim.guest.console import SAYS, Closed, GuestConsole, Login, Trouble
from harness.sim.launch import Job
from harness.sim.transcript import NpuUse

COMMANDS = "run.sh"
_PATIENCE = 10.0  # seconds for the pipe to be known, which it is before the simulator is at work


class LinuxConsole:
    """A Companion (``launch.py``). ``status`` is what the shell said that the runner ended with."""

    def __init__(self, linux: Linux, job: Job, mount: str) -> None:
        limits = job.limits
        self._login = Login(linux.user, linux.prompt, limits.boot, limits.shell)
        self._mount = mount
        self._ours, self._guests = socket.socketpair()
        self._pipe = -1
        self._known = Event()
        self._thread = Thread(target=self._talk, name="console", daemon=True)
        self.status: int | None = None
        self.descriptors: tuple[int, ...] = (self._guests.fileno(),)
        self.words: tuple[str, ...] = (
            *("-chardev", f"socket,id=console,fd={self._guests.fileno()}"),
            *("-serial", "chardev:console"),
        )

    @property
    def busy(self) -> bool:
        return False

    def use(self) -> NpuUse | None:
        return None

    def console(self, read_end: int) -> None:
        """The simulator has been started: it has its end of the socket, and here is the pipe."""
        self._guests.close()
        self._pipe = os.open(f"/proc/self/fd/{read_end}", os.O_WRONLY | os.O_CLOEXEC)
        self._known.set()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """When the simulator has ended."""
        self._known.set()
        for end in (self._ours, self._guests):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._ours.close()
        self._guests.close()

    def _talk(self) -> None:
        if not self._known.wait(_PATIENCE) or self._pipe < 0:
            return
        try:
            console = GuestConsole(self._ours.fileno(), self._login, self._record)
            console.log_in()
            if console.command(f"cd {self._mount}", self._login.shell):
                raise Trouble(f"the guest has no directory {self._mount}")
            self.status = console.command(f"sh {COMMANDS}", None)
            console.command("sync", self._login.shell)
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


@contextmanager
def talking(linux: Linux, job: Job, mount: str) -> Iterator[LinuxConsole]:
    """While the block runs, a simulator that is given the words has a console that is talked to."""
    console = LinuxConsole(linux, job, mount)
    console.start()
    try:
        yield console
    finally:
        console.close()
