"""QEMU with a Linux guest: its image, its console, its files by virtio-9p, and its NPU.

The console is driven as by a user (``guest/console.py``); what it says goes through the simulator's
output pipe.

The guest's driver of the NPU (targets/linux/ethosu) has a virtio console for itself. Its other end
is a socket of the harness, outside of the run's directory, which the guest can reach. It carries
the doorbell (``harness/npu/doorbell.py``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Thread

from harness.config.target import Linux, Qemu, Target
from harness.npu.doorbell import Run, SharedMemory, answering
from harness.sim.companion import ModelledNpu, NpuRunner, modelled, npu_of
from harness.sim.guest.console import (
    MESSAGE_PREFIX,
    Closed,
    GuestConsole,
    GuestProblem,
    line_of,
)
from harness.sim.guest.image import RUNNER, ImageSettings, image
from harness.sim.linux_session import COMMANDS, commands, stored_runner
from harness.sim.qemu_command import common, memory_limit, own_files
from harness.sim.simulator import Companion, GuestJob, Launch
from harness.system.toolchain import Tool

_MOUNT = "/work"  # as targets/linux/init.sh mounts it


class LinuxConsole(Companion):
    """``status``: the runner's exit status, as the shell reports it."""

    began = False

    def __init__(self, linux: Linux, job: GuestJob, mount: str) -> None:
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
            line = line_of(self._ours.fileno())
            console = GuestConsole(line, self._linux, self._limits, self._record)
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


def launch(target: Target, settings: Qemu, tool: Tool, job: GuestJob) -> Launch:
    """Return how QEMU starts with a Linux guest. Raises what ``image`` does."""
    linux, guest = target.linux, settings.guest
    assert linux is not None, "asked only of a target with Linux"
    assert guest is not None, "such a target has one"
    made = image(
        ImageSettings(linux.hostname, guest.console, guest.modules, npu=target.npu is not None),
        stored_runner(job.elf),
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
def beside(target: Target, settings: Qemu, job: GuestJob) -> Iterator[Sequence[Companion]]:
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
