"""QEMU system emulation, the program's command line passed through semihosting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from harness.config.target import Target
from harness.core.simulator_name import SimulatorName
from harness.sim.gdbstub.host_calls import HeapInfo, HostCalls, counted, read_host_calls
from harness.sim.gdbstub.tensors import method_calls
from harness.sim.qemu_command import argv, memory_limit, own_files
from harness.sim.simulator import Companion, GuestJob, Launch, Simulator, section
from harness.system.toolchain import Tool

DRIVER_OUTSIDE = "the functions of the NPU's driver are not run: the NPU's model does their work"


class _Qemu(Simulator):
    name = SimulatorName.QEMU

    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        if target.linux is not None:
            from harness.sim import qemu_linux

            return qemu_linux.launch(target, section(target.simulators.qemu), tool, job)
        words = argv(str(tool.path), section(target.simulators.qemu), job.elf, job.arguments)
        if job.counted is not None:
            # Real time that passes while the core is stopped must not count as instructions. QEMU's
            # documentation, "-icount": with sleep=on virtual time follows it when the CPU is idle.
            words = tuple(f"{w},sleep=off" if w.startswith("shift=") else w for w in words)
        outside = _host_calls(target, job).functions and target.npu is not None
        return Launch(
            words,
            readable=(job.elf, *own_files(tool)),
            has_monitor=True,
            stands_in=(DRIVER_OUTSIDE,) if outside else (),
            memory_bytes=memory_limit(section(target.simulators.qemu)),
        )

    def beside(self, target: Target, job: GuestJob) -> AbstractContextManager[Sequence[Companion]]:
        settings = section(target.simulators.qemu)
        if target.linux is not None:
            from harness.sim import qemu_linux

            return qemu_linux.beside(target, settings, job)
        calls = _host_calls(target, job)
        if settings.shared_memory is None and not calls.needs_hooks:
            return nullcontext(())
        return _served(target, calls, job)


@contextmanager
def _served(target: Target, calls: HostCalls, job: GuestJob) -> Iterator[Sequence[Companion]]:
    from harness.sim.companion import npu_of, served  # 120 ms, for an NPU or gdbstub hooks

    npu = npu_of(target.npu, section(target.simulators.qemu).shared_memory)
    with served(npu, calls, job.work) as (_, companions):
        yield companions


def heap_info(target: Target) -> HeapInfo:
    """Return the answer of the target's FVP; zeros without one: all is as linked."""
    fvp = target.simulators.fvp
    if fvp is None or fvp.semihosting is None:
        return HeapInfo(0, 0, 0, 0)
    prefix = fvp.semihosting.enable.removesuffix("enable")
    given = {
        name.removeprefix(prefix): int(str(value), 0)
        for name, value in fvp.parameters.items()
        if name.removeprefix(prefix) in HeapInfo.__dataclass_fields__
    }
    return HeapInfo(**given)


def _host_calls(target: Target, job: GuestJob) -> HostCalls:
    """Return the host calls of the ELF, and the places to count, read or write in it."""
    calls = read_host_calls(job.elf)
    calls = replace(calls, heap=heap_info(target), counted=job.counted, tensors=job.tensors)
    if job.tensors is not None:
        calls = replace(calls, method=method_calls(job.elf))
    return calls if job.counted is None else counted(calls, job.elf)


SIMULATOR = _Qemu()
