"""What works beside QEMU for one guest: an NPU, and the answers that an FVP would give.

An Ethos-U is a model that works in the guest's DDR, which is a file. The file lies in the run's
directory and is as large as the DDR, but has holes: only what the firmware uses gets disk space,
before the start, so that a full disk is an error and never a signal. It is removed when the run
is over. Our own runner reaches the model by its doorbell; for a program with
ethos-u-core-driver, and for SYS_HEAPINFO, the guest is attended (harness/attend).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from harness.attend.aside import Aside
from harness.attend.attendance import Attendance, Listener, Npu, attending
from harness.attend.driver import GuestStuck
from harness.attend.guest import GuestMemory
from harness.attend.heap import HeapInfo
from harness.attend.program import Program
from harness.attend.ticks import Steps
from harness.ethosu.doorbell import Identity, Outcome, Result, Run, SharedMemory, serving
from harness.simulate.launch import Companion
from harness.simulate.transcript import NpuResult, NpuStop, NpuUse
from harness.system.files import disk_errors
from harness.target.loading import Qemu, Region, Target

# In the guest's directory, QEMU's current one, so that they are short: the path of a Unix socket
# has 107 characters at most.
DDR = "npu-ddr"  # the file of the memory that QEMU shares
DEBUGGER = "qemu-gdb"  # the socket at which QEMU is attended
_REST = 1 << 20  # of what is neither a pool nor a moved region: the mailbox, alignment


class Attendant:
    """Runs the guest's command streams, and remembers how many and what went wrong first."""

    def __init__(self, run: Run, *, with_npu: bool = True) -> None:
        self._run = run
        self._with_npu = with_npu
        self._jobs = 0
        self._stop: NpuStop | None = None
        self._attendance: Attendance | None = None
        self._aside = Aside()
        self.busy = False

    @property
    def status(self) -> int | None:
        return None if self._attendance is None else self._attendance.status

    def use(self) -> NpuUse | None:
        if not self._with_npu and not self._jobs and self._stop is None:
            return None
        return NpuUse(self._jobs, self._stop)

    def console(self, read_end: int) -> None:
        if self._attendance is not None:
            self._aside.attach(read_end)

    def run(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        self._jobs += 1
        self.busy = True
        try:
            outcome = self._run(commands, regions)
        except Exception as error:  # a boundary: the guest is told, and so is the record
            outcome = self._broken(error)
        finally:
            self.busy = False
        if outcome.result is not Result.OK:
            result = NpuResult[outcome.result.name]
            self._stopped(NpuStop(self._jobs, result, outcome.message, outcome.qread))
        return outcome

    @contextmanager
    def attend(
        self,
        folder: Path,
        program: Program,
        heap: HeapInfo,
        npu: Npu | None,
        steps: Steps | None,
    ) -> Iterator[None]:
        """A guest that will not get what it waits for has been ended; the record says why."""
        line = Listener(folder, DEBUGGER)
        try:
            with attending(line, program, heap, npu, self._aside, steps) as self._attendance:
                yield
        except GuestStuck as stuck:
            self._stopped(NpuStop(self._jobs + 1, NpuResult.REFUSED, str(stuck)))
        finally:
            self._aside.close()

    def _broken(self, error: Exception) -> Outcome:
        message = f"{type(error).__name__}: {error}"
        self._stopped(NpuStop(self._jobs, NpuResult.BROKEN, message))
        return Outcome(Result.UNSUPPORTED, f"the model failed: {message}", status=0)

    def _stopped(self, stop: NpuStop) -> None:
        self._stop = self._stop or stop


@contextmanager
def companion(
    target: Target, settings: Qemu, program: Program, work: Path, steps: Steps | None = None
) -> Iterator[Companion | None]:
    """While the block runs, the guest in ``work`` has what it asks for; ``target`` is as it is on
    the simulator."""
    memory = settings.shared_memory
    has_npu = target.npu is not None and memory is not None
    if not has_npu and not program.attended:
        yield None
        return
    run, identity = _npu(target) if has_npu else (_refusing(target), None)
    attendant = Attendant(run, with_npu=has_npu)
    with ExitStack() as stack:
        view: Callable[..., GuestMemory] = GuestMemory
        if memory is not None:
            shared = stack.enter_context(_shared(work / DDR, memory, target, program))
            view = partial(GuestMemory, shared=shared, origin=memory.origin, size=memory.size)
            if identity is not None and not program.functions:
                stack.enter_context(serving(work, shared, identity, attendant.run))
        if program.attended:
            npu = Npu(identity, attendant.run, view) if program.functions else None
            stack.enter_context(attendant.attend(work, program, heap_info(target), npu, steps))
        yield attendant


def heap_info(target: Target) -> HeapInfo:
    """What the target's FVP would answer; without one, that all is as the program was linked."""
    fvp = target.settings.fvp
    if fvp is None or fvp.semihosting is None:
        return HeapInfo(0, 0, 0, 0)
    prefix = fvp.semihosting.enable.removesuffix("enable")
    given = {
        name.removeprefix(prefix): int(str(value), 0)
        for name, value in fvp.parameters.items()
        if name.removeprefix(prefix) in HeapInfo.__dataclass_fields__
    }
    return HeapInfo(**given)


def _npu(target: Target) -> tuple[Run, Identity]:
    from harness.ethosu import doorbell_npu  # numpy: not for a run without an NPU

    assert target.npu is not None
    npu = target.npu
    return (
        doorbell_npu.npu(npu.product, npu.macs),
        doorbell_npu.identity(npu.product, npu.macs),
    )


def _refusing(target: Target) -> Run:
    message = f"the target {target.name} has no NPU"
    return lambda _commands, _regions: Outcome(Result.REFUSED, message, status=0)


@contextmanager
def _shared(file: Path, memory: Region, target: Target, program: Program) -> Iterator[SharedMemory]:
    try:
        with disk_errors("making the memory that the NPU's model shares"):
            _make(file, memory, target, program)
        yield SharedMemory(file, memory.origin)
    finally:
        file.unlink(missing_ok=True)


def _make(file: Path, memory: Region, target: Target, program: Program) -> None:
    """The whole file with holes; space for what the firmware may write to."""
    with file.open("xb") as opened:
        os.ftruncate(opened.fileno(), memory.size)
        pools = sum(target.pools.values()) + _REST
        spans = [(region.origin, min(region.size, pools)) for region in target.memory]
        if program.functions:
            spans = list(program.segments)
        for origin, size in spans:
            if size and memory.origin <= origin and origin + size <= memory.end:
                os.posix_fallocate(opened.fileno(), origin - memory.origin, size)
