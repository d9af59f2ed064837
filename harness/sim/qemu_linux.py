"""QEMU with a Linux guest: its image, its console, its files by virtio-9p, and its NPU.

The guest's driver of the NPU (targets/linux/ethosu) has a virtio console for itself. Its other end
is a socket of the harness: nothing of it is in the run's directory, which the guest can reach. It
carries the doorbell (``harness/npu/doorbell.py``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from harness.config.loading import Qemu, Target
from harness.npu.doorbell import Run, SharedMemory, answering
from harness.sim.companion import ModelledNpu, NpuRunner, modelled, npu_of
from harness.sim.guest.console import COMMANDS, LinuxConsole, commands
from harness.sim.guest.image import RUNNER, Settings, image
from harness.sim.qemu import common, memory_limit, own_files
from harness.sim.simulator import Companion, Job, Launch
from harness.system.toolchain import Tool

_MOUNT = "/work"  # as targets/linux/init.sh mounts it
_STRIPPED = ".stripped"  # the end of the name of the file that a board stores


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
