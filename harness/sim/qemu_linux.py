"""QEMU with a Linux guest: its image, its console, its files by virtio-9p, and its NPU.

The console is driven as by a user: log in, run commands one at a time, power off. Its bytes go to
the record first, through the simulator's output pipe, so that the record has all output in one
order. Here they are read without the kernel's messages, which may appear at any time, even in the
middle of a line. A failure is reported in a line that begins with ``MESSAGE_PREFIX``; the log
parser (``harness.log``) knows it, so reading the record again gives the same verdict.

The guest's driver of the NPU (targets/linux/ethosu) has a virtio console for itself. Its other end
is a socket of the harness, outside of the run's directory, which the guest can reach. It carries
the doorbell (``harness/npu/doorbell.py``).
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Thread

from pexpect import EOF, TIMEOUT
from pexpect.fdpexpect import fdspawn

from harness.config.target import Limits, Linux, Qemu, Target
from harness.npu.doorbell import Run, SharedMemory, answering
from harness.sim.companion import ModelledNpu, NpuRunner, modelled, npu_of
from harness.sim.guest.image import RUNNER, Settings, image
from harness.sim.qemu import common, memory_limit, own_files
from harness.sim.simulator import Companion, Job, Launch
from harness.system.toolchain import Tool

_MOUNT = "/work"  # as targets/linux/init.sh mounts it
_STRIPPED = ".stripped"  # the end of the name of the file that a board stores

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

    began = False

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
            self.began = True
            self.status = console.command(f"sh {COMMANDS}", None)
            console.command("sync", self._limits.shell)
            console.power_off()
        except Closed:
            pass  # the simulator has ended; the record shows how
        except GuestProblem as problem:
            self.problem = f"{MESSAGE_PREFIX}{problem}"
            self._record(f"\n{self.problem}\n".encode())
        finally:
            os.close(self._pipe)

    def _record(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the reader has ended
            while data:
                data = data[os.write(self._pipe, data) :]


def commands(runner: str, arguments: Sequence[str]) -> bytes:
    """The script that the guest's shell runs: the runner's command line."""
    return f"exec {shlex.join((runner, *arguments[1:]))}\n".encode()


def launch(target: Target, settings: Qemu, tool: Tool, job: Job) -> Launch:
    """Raises what ``image`` does."""
    linux, guest = target.linux, settings.guest
    assert linux is not None, "asked only of a target with Linux"
    assert guest is not None, "such a target has one"
    stripped = job.elf.with_name(job.elf.name + _STRIPPED)
    made = image(
        Settings(linux.hostname, guest.console, guest.modules, npu=target.npu is not None),
        stripped if stripped.is_file() else job.elf,
        job.root,
    )
    return Launch(
        (
            *(str(tool.path), *common(settings), *settings.arguments),
            *("-nodefaults", "-no-reboot"),
            # QEMU's current directory is the run's. Outside it the guest's users are this user.
            *("-fsdev", "local,id=work,path=.,security_model=none"),
            *("-device", "virtio-9p-device,fsdev=work,mount_tag=work"),
            *("-kernel", str(made.kernel)),
            *("-initrd", str(made.initramfs)),
            *("-append", " ".join((f"console={guest.console}", *guest.options))),
        ),
        files={COMMANDS: commands(RUNNER, job.arguments)},
        readable=(made.kernel, made.initramfs, *own_files(tool)),
        has_monitor=True,
        memory_bytes=memory_limit(settings),
        has_shell=True,
    )


@contextmanager
def beside(target: Target, settings: Qemu, job: Job) -> Iterator[Sequence[Companion]]:
    assert target.linux is not None, "asked only of a target with Linux"
    npu = npu_of(target.npu, settings.shared_memory)
    with closing(LinuxConsole(target.linux, job, _MOUNT)) as console:
        if npu is None:
            yield (console,)
            return
        with served_npu(npu) as runner:
            yield (console, runner)


class _LinuxNpu(NpuRunner):
    """``line``: the guest's end of the doorbell, a socket."""

    def __init__(self, run: Run, memory: SharedMemory, line: socket.socket) -> None:
        super().__init__(run, memory)
        self._line = line
        self.descriptors += (line.fileno(),)
        self.words += (
            *("-chardev", f"socket,id=npu,fd={line.fileno()}"),
            *("-device", "virtio-serial-device,max_ports=1"),
            *("-device", "virtconsole,chardev=npu"),
        )

    def started(self, read_end: int) -> None:
        self._line.close()


@contextmanager
def served_npu(npu: ModelledNpu) -> Iterator[NpuRunner]:
    """While the block runs, the guest has the NPU."""
    with ExitStack() as stack:
        memory, process = stack.enter_context(modelled(npu))
        ours, guests = (stack.enter_context(end) for end in socket.socketpair())
        ours.setblocking(False)
        runner = _LinuxNpu(process, memory, guests)
        ends = os.dup(ours.fileno()), os.dup(ours.fileno())
        stack.enter_context(answering(*ends, memory, npu.identity, runner.run))
        stack.callback(process.stop)  # first, so that nobody above waits for a job
        yield runner
