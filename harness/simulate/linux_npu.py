"""The NPU of a Linux guest on QEMU: its model, the guest's RAM that both share, and the line
between them.

The guest's driver (targets/linux/ethosu) has a virtio console for itself, whose other end is a
socket of ours: nothing of it is in the run's directory, which the guest can reach. What goes over
it is the doorbell (``harness/ethosu/doorbell.py``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from harness.ethosu.doorbell import Identity, SharedMemory, answering
from harness.ethosu.npu_process import NpuProcess
from harness.formats.cop import CONFIG_WORDS, ID_WORDS
from harness.simulate.companion import Attendant
from harness.simulate.launch import Companion
from harness.simulate.transcript import NpuUse
from harness.system.files import disk_errors
from harness.target.model import Region
from harness.target.npu import Npu


class WithNpu:
    """A Companion (``launch.py``): ``console``, and the NPU at the guest's end of ``line``."""

    def __init__(self, console: Companion, npu: Attendant, line: socket.socket) -> None:
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
    words = CONFIG_WORDS[npu.product, npu.macs], ID_WORDS[npu.product]
    with ExitStack() as stack:
        with disk_errors("making the memory that the NPU's model shares"):
            memory = stack.enter_context(SharedMemory(region.size, region.origin))
        process = stack.enter_context(NpuProcess(npu.product, npu.macs, memory))
        attendant = Attendant(process, memory)
        ours, guests = (stack.enter_context(end) for end in socket.socketpair())
        ours.setblocking(False)
        ends = os.dup(ours.fileno()), os.dup(ours.fileno())
        stack.enter_context(answering(*ends, memory, Identity(*words), attendant.run))
        stack.callback(process.stop)  # first, so that nobody above waits for a job
        yield WithNpu(console, attendant, guests)
