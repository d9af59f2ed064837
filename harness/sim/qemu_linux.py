"""QEMU with a Linux guest: its image, its console, its files by virtio-9p, and its NPU.

The guest's driver of the NPU (targets/linux/ethosu) has a virtio console for itself. Its other end
is a socket of the harness: nothing of it is in the run's directory, which the guest can reach. It
carries the doorbell (``harness/npu/doorbell.py``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

from harness.config.loading import Qemu, Target
from harness.config.model import Region
from harness.config.npu import Npu
from harness.npu.doorbell import Identity, answering
from harness.npu.npu_process import NpuProcess
from harness.sim.companion import NpuRunner, shared_memory
from harness.sim.guest.console import COMMANDS, commands, talking
from harness.sim.guest.image import RUNNER, Image, Settings, image
from harness.sim.simulator import Companion, Job
from harness.sim.transcript import NpuUse

_MOUNT = "/work"  # as targets/linux/init.sh mounts it
_STRIPPED = ".stripped"


def words(target: Target, settings: Qemu, job: Job) -> tuple[str, ...]:
    """QEMU's arguments behind those of every guest. Raises what ``image`` does."""
    made = guest_image(target, settings, job)
    assert settings.guest is not None, "a target with Linux has one"
    append = (f"console={settings.guest.console}", *settings.guest.options)
    return (
        *("-nodefaults", "-no-reboot"),
        # QEMU's current directory is the run's; whoever the guest is, outside it is who we are.
        *("-fsdev", "local,id=work,path=.,security_model=none"),
        *("-device", "virtio-9p-device,fsdev=work,mount_tag=work"),
        *("-kernel", str(made.kernel)),
        *("-initrd", str(made.initramfs)),
        *("-append", " ".join(append)),
    )


def guest_image(target: Target, settings: Qemu, job: Job) -> Image:
    linux, guest = target.linux, settings.guest
    assert linux is not None, "asked only of a target with Linux"
    assert guest is not None, "such a target has one"
    stripped = job.elf.with_name(job.elf.name + _STRIPPED)
    return image(
        Settings(linux.hostname, guest.console, guest.modules, npu=target.npu is not None),
        stripped if stripped.is_file() else job.elf,
        job.root,
    )


def files(job: Job) -> dict[str, bytes]:
    return {COMMANDS: commands(RUNNER, job.arguments)}


def readable(words: tuple[str, ...]) -> tuple[Path, ...]:
    """The files among ``words`` that QEMU reads."""
    given = dict(pairwise(words))
    return tuple(Path(given[name]) for name in ("-kernel", "-initrd"))


@contextmanager
def beside(target: Target, settings: Qemu, job: Job) -> Iterator[Companion]:
    assert target.linux is not None, "asked only of a target with Linux"
    with talking(target.linux, job, _MOUNT) as console:
        if target.npu is None or settings.shared_memory is None:
            yield console
            return
        with with_npu(console, target.npu, settings.shared_memory) as both:
            yield both


class WithNpu:
    """A Companion (``simulator.py``): ``console``, and the NPU at the guest's end of ``line``."""

    def __init__(self, console: Companion, npu: NpuRunner, line: socket.socket) -> None:
        self._console = console
        self._npu = npu
        self._line = line
        self.words = (
            *console.words,
            *npu.words,
            *("-chardev", f"socket,id=npu,fd={line.fileno()}"),
            *("-device", "virtio-serial-device,max_ports=1"),
            *("-device", "virtconsole,chardev=npu"),
        )
        self.descriptors = (*console.descriptors, *npu.descriptors, line.fileno())

    @property
    def busy(self) -> bool:
        return self._npu.busy or self._console.busy

    @property
    def status(self) -> int | None:
        return self._console.status

    def use(self) -> NpuUse | None:
        return self._npu.use()

    def console(self, read_end: int) -> None:
        """The simulator has been started: it has its end of the line."""
        self._line.close()
        self._console.console(read_end)


@contextmanager
def with_npu(console: Companion, npu: Npu, region: Region) -> Iterator[WithNpu]:
    """While the block runs, the guest whose RAM is ``region`` has the NPU, too."""
    with ExitStack() as stack:
        memory = stack.enter_context(shared_memory(region))
        process = stack.enter_context(NpuProcess(npu.product, npu.macs, memory))
        npu_runner = NpuRunner(process, memory)
        ours, guests = (stack.enter_context(end) for end in socket.socketpair())
        ours.setblocking(False)
        ends = os.dup(ours.fileno()), os.dup(ours.fileno())
        identity = Identity.of(npu.product, npu.macs)
        stack.enter_context(answering(*ends, memory, identity, npu_runner.run))
        stack.callback(process.stop)  # first, so that nobody above waits for a job
        yield WithNpu(console, npu_runner, guests)
