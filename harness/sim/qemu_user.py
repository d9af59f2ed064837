"""QEMU in user mode: a Linux target's runner as a process of this machine.

It has the instructions of a named CPU. There is no guest: this machine's kernel handles the system
calls."""

from __future__ import annotations

from harness.config.target import Target
from harness.core.simulator_name import SimulatorName
from harness.sim.simulator import GuestJob, Launch, Simulator, section
from harness.system.toolchain import Tool

# For the Linux port: the kernel's counts of this process are those of the emulator.
_EMULATED = {"HIL_EMULATED": "1"}


class _QemuUser(Simulator):
    name = SimulatorName.QEMU_USER
    native = True  # it ends as its program does, with the same signal

    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        # QEMU's -L: a path that exists below ``root`` replaces this machine's.
        root = () if job.root is None else ("-L", str(job.root))
        words = ("-cpu", section(target.simulators.qemu_user).cpu, *root, str(job.elf))
        return Launch(
            (str(tool.path), *words, *job.arguments[1:]),
            environment=_EMULATED,
            readable=(job.elf, *(() if job.root is None else (job.root,))),
        )


SIMULATOR = _QemuUser()
