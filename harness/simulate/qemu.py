"""QEMU system emulation, the program's command line passed through semihosting.

Beside it, where a target has an Ethos-U, works a model of one, in the guest's DDR, which is a
file. The file lies in the run's directory and is as large as the DDR, but has holes: only what
the firmware uses gets disk space, before the start, so that a full disk is an error and never a
signal. It is removed when the run is over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from harness.ethosu.doorbell import Outcome, Result, Run, SharedMemory, serving
from harness.simulate.launch import Companion, Job, Launch, Simulator
from harness.simulate.transcript import NpuResult, NpuStop, NpuUse
from harness.system import toolchain
from harness.system.files import disk_errors
from harness.system.toolchain import Tool
from harness.target.loading import Qemu, Region, Target
from harness.target.model import SimulatorName
from harness.target.npu import Npu

# In the guest's directory, QEMU's current one, so that its name is short: the path of a Unix
# socket has 107 characters at most.
MONITOR = "qemu-monitor"
DDR = "npu-ddr"  # likewise: the file of the memory that QEMU shares


class _Qemu:
    name = SimulatorName.QEMU
    native = False

    def find(self, target: Target) -> Tool | None:
        return toolchain.find(_settings(target).executable)

    def require(self, target: Target) -> Tool:
        return toolchain.require(_settings(target).executable)

    def launch(self, target: Target, tool: Tool, job: Job) -> Launch:
        words = argv(str(tool.path), _settings(target), job.elf, job.arguments)
        prefix = tool.path.resolve().parent.parent
        own = tuple(prefix / name for name in ("lib", "libexec", "share"))
        return Launch(words, readable=(job.elf, *own), monitor=MONITOR)

    def beside(self, target: Target, work: Path) -> AbstractContextManager[Companion | None]:
        """A model of the target's Ethos-U, which works in the memory that QEMU shares."""
        memory = _settings(target).shared_memory
        if target.npu is None or memory is None:
            return nullcontext()
        return attending(target, target.npu, memory, work / DDR)


def _settings(target: Target) -> Qemu:
    assert target.settings.qemu is not None, "only a target that has QEMU is given to it"
    return target.settings.qemu


SIMULATOR: Simulator = _Qemu()


def argv(executable: str, settings: Qemu, elf: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    return (
        executable,
        *_machine(settings),
        "-nographic",
        *("-monitor", f"unix:{MONITOR},server=on,wait=off"),
        *("-serial", "none"),
        *settings.arguments,
        *("-semihosting-config", semihosting(arguments)),
        *("-kernel", str(elf)),
    )


def _machine(settings: Qemu) -> tuple[str, ...]:
    memory = ("-m", settings.memory) if settings.memory else ()
    if settings.shared_memory is None:
        return ("-M", settings.machine, *memory)
    size = f"{settings.shared_memory.size >> 20}M"
    file = f"memory-backend-file,id=ddr,size={size},mem-path={DDR},share=on"
    return ("-M", f"{settings.machine},memory-backend=ddr", "-m", size, "-object", file)


def semihosting(arguments: Sequence[str]) -> str:
    """The value of ``-semihosting-config``; in it a comma of an argument is written twice."""
    words = (f"arg={argument.replace(',', ',,')}" for argument in arguments)
    return ",".join(("enable=on", "target=native", *words))


_REST = 1 << 20  # of what is neither a pool nor a moved region: the mailbox, alignment


class Attendant:
    """Runs the guest's command streams, and remembers how many and what went wrong first."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._jobs = 0
        self._stop: NpuStop | None = None
        self.busy = False

    def use(self) -> NpuUse:
        return NpuUse(self._jobs, self._stop)

    def run(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        self._jobs += 1
        self.busy = True
        try:
            outcome = self._run(commands, regions)
        except Exception as error:  # a boundary: the guest is told, and so is the record
            outcome = self._broken(error)
        finally:
            self.busy = False
        if outcome.result is not Result.OK and self._stop is None:
            result = NpuResult[outcome.result.name]
            self._stop = NpuStop(self._jobs, result, outcome.message, outcome.qread)
        return outcome

    def _broken(self, error: Exception) -> Outcome:
        message = f"{type(error).__name__}: {error}"
        if self._stop is None:
            self._stop = NpuStop(self._jobs, NpuResult.BROKEN, message)
        return Outcome(Result.UNSUPPORTED, f"the model failed: {message}", status=0)


@contextmanager
def attending(target: Target, npu: Npu, memory: Region, file: Path) -> Iterator[Attendant]:
    """While the block runs, a guest in the directory of ``file`` has an NPU; ``target`` is as it
    is on the simulator."""
    from harness.ethosu import doorbell_npu  # numpy: not for a run without an NPU

    attendant = Attendant(doorbell_npu.npu(npu.product, npu.macs))
    identity = doorbell_npu.identity(npu.product, npu.macs)
    try:
        with disk_errors("making the memory that the NPU's model shares"):
            _make(file, memory, target)
        with serving(file.parent, SharedMemory(file, memory.origin), identity, attendant.run):
            yield attendant
    finally:
        file.unlink(missing_ok=True)


def _make(file: Path, memory: Region, target: Target) -> None:
    """The whole file with holes; space for what the firmware may write to."""
    with file.open("xb") as opened:
        os.ftruncate(opened.fileno(), memory.size)
        for region in target.memory:
            if memory.origin <= region.origin and region.end <= memory.end:
                size = min(region.size, sum(target.pools.values()) + _REST)
                os.posix_fallocate(opened.fileno(), region.origin - memory.origin, size)
