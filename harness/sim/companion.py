"""What works beside QEMU for one guest: the model of an NPU, and the gdbstub hooks.

An Ethos-U is a model that works in the guest's DDR, which is memory without a name that we share
with QEMU: the guest has no file that it could cut short, and nothing is left of it when the run is
over. The model is a process of its own, which ends when the simulator does, whatever it is doing.
The bundled runner reaches it by its doorbell; a program with ethos-u-core-driver, or with
SYS_HEAPINFO, is served by gdbstub hooks (harness/sim/gdbstub).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from harness.config.loading import Qemu, Target
from harness.config.model import Region
from harness.npu.doorbell import Identity, Outcome, Result, Run, SharedMemory, serving
from harness.npu.npu_process import STOPPED, NpuModelFailed, NpuProcess
from harness.sim.gdbstub.driver import GuestMemory, GuestStuck
from harness.sim.gdbstub.hooks import (
    ConsoleInjector,
    DrivenNpu,
    GuestEnd,
    StubSocket,
    serving_hooks,
)
from harness.sim.gdbstub.program import CountedOperators, HeapInfo, Program
from harness.sim.simulator import Companion
from harness.sim.transcript import NpuResult, NpuStop, NpuUse
from harness.system.files import disk_errors

MEMORY = "ddr"  # what QEMU calls the memory that is shared


class NpuRunner:
    """A Companion (``simulator.py``) that runs the guest's command streams on the model of the NPU,
    counts them, and keeps the first failure."""

    def __init__(
        self, run: Run, memory: SharedMemory | None = None, *, with_npu: bool = True
    ) -> None:
        self.words: tuple[str, ...] = ()
        self.descriptors: tuple[int, ...] = ()
        if memory is not None:
            file = f"memory-backend-file,id={MEMORY},size={memory.size >> 20}M"
            self.words = ("-object", f"{file},mem-path={memory.path},share=on")
            self.descriptors = (memory.descriptor,)
        self._run = run
        self._with_npu = with_npu
        self._jobs = 0
        self._stop: NpuStop | None = None
        self._guest_end: GuestEnd | None = None
        self._injector = ConsoleInjector()
        self._stub_socket: StubSocket | None = None
        self.busy = False

    @property
    def status(self) -> int | None:
        return None if self._guest_end is None else self._guest_end.status

    def use(self) -> NpuUse | None:
        if not self._with_npu and not self._jobs and self._stop is None:
            return None
        return NpuUse(self._jobs, self._stop)

    def console(self, read_end: int) -> None:
        """QEMU has been started: it has its end of the gdb stub's socket."""
        if self._stub_socket is not None:
            self._stub_socket.far.close()
            self._injector.connect(read_end)

    def run(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        self._jobs += 1
        self.busy = True
        try:
            outcome = self._run(commands, regions)
        except NpuModelFailed as error:
            outcome = self._broken(error.message)
        except Exception as error:  # a boundary: the guest is told, and so is the record
            outcome = self._broken(f"{type(error).__name__}: {error}")
        finally:
            self.busy = False
        if outcome is STOPPED:  # the run is over, and nothing went wrong with the job
            return outcome
        if outcome.result is not Result.OK:
            result = NpuResult[outcome.result.name]
            self._stopped(NpuStop(self._jobs, result, outcome.message, outcome.qread))
        return outcome

    @contextmanager
    def serve_hooks(
        self,
        program: Program,
        heap: HeapInfo,
        npu: DrivenNpu | None,
        counted: CountedOperators | None,
    ) -> Iterator[None]:
        """A guest that will not get what it waits for has been ended; the record says why."""
        gdb = self._stub_socket = StubSocket()
        self.words += gdb.words
        self.descriptors += (gdb.far.fileno(),)
        try:
            with serving_hooks(gdb, program, heap, npu, self._injector, counted) as self._guest_end:
                yield
        except GuestStuck as stuck:
            self._stopped(NpuStop(self._jobs + 1, NpuResult.REFUSED, str(stuck)))
        finally:
            self._injector.close()

    def _broken(self, message: str) -> Outcome:
        self._stopped(NpuStop(self._jobs, NpuResult.BROKEN, message))
        return Outcome(Result.UNSUPPORTED, f"the model failed: {message}", status=0)

    def _stopped(self, stop: NpuStop) -> None:
        self._stop = self._stop or stop


def shared_memory(region: Region) -> SharedMemory:
    """A guest's RAM in which the NPU's model works. Raises DiskError."""
    with disk_errors("making the memory that the NPU's model shares"):
        return SharedMemory(region.size, region.origin)


@contextmanager
def companion(
    target: Target,
    settings: Qemu,
    program: Program,
    work: Path,
    counted: CountedOperators | None = None,
) -> Iterator[Companion | None]:
    """While the block runs, the guest in ``work`` has what it asks for; ``target`` is as it is on
    the simulator."""
    region = settings.shared_memory
    has_npu = target.npu is not None and region is not None
    if region is None and not program.needs_hooks:
        yield None
        return
    with ExitStack() as stack:
        memory: SharedMemory | None = None
        view: Callable[..., GuestMemory] = GuestMemory
        if region is not None:
            memory = stack.enter_context(shared_memory(region))
            view = partial(GuestMemory, shared=memory, origin=region.origin, size=region.size)
        process, identity = None, None
        if target.npu is not None and has_npu:
            identity = Identity.of(target.npu.product, target.npu.macs)
            process = stack.enter_context(NpuProcess(target.npu.product, target.npu.macs, memory))
        npu_runner = NpuRunner(process or _refusing(target), memory, with_npu=has_npu)
        if memory is not None and identity is not None and not program.functions:
            stack.enter_context(serving(work, memory, identity, npu_runner.run))
        if program.needs_hooks:
            npu = DrivenNpu(identity, npu_runner.run, view) if program.functions else None
            stack.enter_context(npu_runner.serve_hooks(program, heap_info(target), npu, counted))
        if process is not None:
            stack.callback(process.stop)  # first, so that nobody above waits for a job
        yield npu_runner


def heap_info(target: Target) -> HeapInfo:
    """What the target's FVP would answer; without one, that all is as the program was linked."""
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


def _refusing(target: Target) -> Run:
    message = f"the target {target.name} has no NPU"
    return lambda _commands, _regions: Outcome(Result.REFUSED, message, status=0)
