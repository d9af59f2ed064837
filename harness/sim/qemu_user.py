"""QEMU in user mode: the runner of a Linux target as a process of this machine, its instructions
those of a named CPU. There is no guest: system calls are answered by the kernel here."""

from __future__ import annotations

from contextlib import nullcontext

from harness.config.target import QemuUser, SimulatorName, Target
from harness.sim.simulator import Job, Launch, Simulator
from harness.system import toolchain
from harness.system.toolchain import Tool

# To the Linux port: what the kernel counts of this process is the emulator's.
_EMULATED = {"HIL_EMULATED": "1"}


class _QemuUser:
    name = SimulatorName.QEMU_USER
    native = True  # it ends as its program does, with the same signal

    def find(self, target: Target) -> Tool | None:
        return toolchain.find(_settings(target).executable)

    def require(self, target: Target) -> Tool:
        return toolchain.require(_settings(target).executable)

    def launch(self, target: Target, tool: Tool, job: Job) -> Launch:
        # Where a path below it is there, that is meant (QEMU's -L).
        root = () if job.root is None else ("-L", str(job.root))
        words = ("-cpu", _settings(target).cpu, *root, str(job.elf))
        return Launch(
            (str(tool.path), *words, *job.arguments[1:]),
            environment={**job.environment, **_EMULATED},
            readable=(job.elf, *(() if job.root is None else (job.root,))),
        )

    def beside(self, target: Target, job: Job) -> nullcontext[tuple[()]]:
        return nullcontext(())


def _settings(target: Target) -> QemuUser:
    assert target.simulators.qemu_user is not None, "only a target that has it is given to it"
    return target.simulators.qemu_user


SIMULATOR: Simulator = _QemuUser()
