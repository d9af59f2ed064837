"""Companions of QEMU for one guest: the model of an NPU, and the gdbstub hooks.

The model of an Ethos-U works in the guest's DDR, anonymous memory shared with QEMU: there is no
file that the guest could truncate, and nothing is left after the run. The model is a process of its
own, which ends with the simulator. The bundled runner reaches it by its doorbell; a program with
ethos-u-core-driver, or with SYS_HEAPINFO, is served by gdbstub hooks (harness/sim/gdbstub)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.npu.doorbell import Identity, Outcome, Result, Run, SharedMemory, serving
from harness.npu.npu_process import STOPPED, NpuModelFailed, NpuProcess
from harness.sim.gdbstub.driver import GuestStuck
from harness.sim.gdbstub.hooks import Hooks
from harness.sim.gdbstub.host_calls import CountedOperators, HeapInfo, HostCalls
from harness.sim.gdbstub.tensors import TensorFiles
from harness.sim.simulator import Companion, NpuResult, NpuStop, NpuUse
from harness.system.files import disk_errors

if TYPE_CHECKING:
    from harness.config.npu import Npu
    from harness.config.target import Region

MEMORY = "ddr"  # QEMU's name of the shared memory


@dataclass(frozen=True)
class ModelledNpu:
    """An Ethos-U, and the guest's RAM in which its model works: address and size in bytes."""

    product: str  # u55, u65, u85
    macs: int
    ram: int
    ram_bytes: int

    @property
    def identity(self) -> Identity:
        return Identity.of(self.product, self.macs)


def npu_of(npu: Npu | None, ram: Region | None) -> ModelledNpu | None:
    """The NPU of a target, with the memory that its simulator shares; None without either."""
    if npu is None or ram is None:
        return None
    return ModelledNpu(npu.product, npu.macs, ram.origin, ram.size)


class NpuRunner(Companion):
    """Runs the guest's command streams on the model of the NPU, counts them, and keeps the first
    failure. ``run``: None on a board without an NPU, whose programs may still have the driver.
    ``memory``: QEMU's guest memory, shared with the model. ``identity``: None without an NPU."""

    def __init__(
        self,
        run: Run | None,
        memory: SharedMemory | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.memory, self.identity = memory, identity
        if memory is not None:
            file = f"memory-backend-file,id={MEMORY},size={memory.size >> 20}M"
            self.words = ("-object", f"{file},mem-path={memory.path},share=on")
            self.descriptors = (memory.descriptor,)
        self._run = run
        self._jobs = 0
        self._stop: NpuStop | None = None
        self.stuck = ""  # why the guest was ended

    def use(self) -> NpuUse | None:
        has_npu = self._run is not None or self._jobs or self._stop is not None
        return NpuUse(self._jobs, self._stop) if has_npu else None

    def run(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        self._jobs += 1
        self.busy = True
        try:
            outcome = _NO_NPU if self._run is None else self._run(commands, regions)
        except NpuModelFailed as error:
            outcome = self._broken(error.message)
        except Exception as error:  # a boundary: guest and record get the message
            outcome = self._broken(f"{type(error).__name__}: {error}")
        finally:
            self.busy = False
        if outcome is STOPPED:  # the run has ended; the job did not fail
            return outcome
        if outcome.result is not Result.OK:
            result = NpuResult[outcome.result.name]
            self._stopped(NpuStop(self._jobs, result, outcome.message, outcome.qread))
        return outcome

    def refuse(self, message: str) -> None:
        """Records that the guest was ended: its request cannot be served."""
        self.stuck = message
        self._stopped(NpuStop(self._jobs + 1, NpuResult.REFUSED, message))

    def _broken(self, message: str) -> Outcome:
        self._stopped(NpuStop(self._jobs, NpuResult.BROKEN, message))
        return Outcome(Result.UNSUPPORTED, f"the model failed: {message}", status=0)

    def _stopped(self, stop: NpuStop) -> None:
        self._stop = self._stop or stop


_NO_NPU = Outcome(Result.REFUSED, "the board has no NPU", status=0)


@contextmanager
def modelled(npu: ModelledNpu) -> Iterator[tuple[SharedMemory, NpuProcess]]:
    """The guest's RAM, and the NPU's model that works in it. Raises DiskError."""
    with disk_errors("making the memory that the NPU's model shares"):
        made = SharedMemory(npu.ram_bytes, npu.ram)
    with made as memory, NpuProcess(npu.product, npu.macs, memory) as process:
        yield memory, process


@contextmanager
def served(
    npu: ModelledNpu | None,
    calls: HostCalls,
    heap: HeapInfo,
    work: Path,
    counted: CountedOperators | None = None,
    tensors: TensorFiles | None = None,
) -> Iterator[tuple[NpuRunner, tuple[Companion, ...]]]:
    """While the block runs, serves the NPU and the host calls of the guest in ``work``. ``heap``:
    the answer to SYS_HEAPINFO."""
    with ExitStack() as stack:
        runner, process = NpuRunner(None), None
        if npu is not None:
            memory, process = stack.enter_context(modelled(npu))
            runner = NpuRunner(process, memory, npu.identity)
            if not calls.functions:
                stack.enter_context(serving(work, memory, npu.identity, runner.run))
        hooks: tuple[Hooks, ...] = ()
        if calls.needs_hooks:
            behind = runner if calls.functions else None
            hooks = (Hooks(calls, heap, behind, counted, tensors),)
            stack.callback(_finish, hooks[0], runner)
        if process is not None:
            stack.callback(process.stop)  # first, so that no callback above waits for a job
        yield runner, (runner, *hooks)


def _finish(hooks: Hooks, runner: NpuRunner) -> None:
    try:
        hooks.finish()
    except GuestStuck as stuck:
        runner.refuse(str(stuck))
