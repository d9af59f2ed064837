"""Companions of QEMU for one guest: the model of an NPU, and the gdbstub hooks.

The model of an Ethos-U works in the guest's DDR, anonymous memory shared with QEMU: there is no
file that the guest could truncate, and nothing is left after the run. The model is a process of its
own, which ends with the simulator. The bundled runner reaches it by its doorbell; a program with
ethos-u-core-driver, or with SYS_HEAPINFO, is served by gdbstub hooks (harness/sim/gdbstub).

For hooks, QEMU is started with ``-S`` and waits for the first packet on its gdb stub, an inherited
socket, so polling is not needed. QEMU writes the console to a pipe that the transcript reader owns.
While the guest is stopped in the gdb stub, everything it printed is already in that pipe, so a line
written now appears in order.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.npu.doorbell import NpuIdentity, Outcome, Result, Run, SharedMemory, serving
from harness.npu.npu_process import STOPPED, NpuModelFailed, NpuProcess
from harness.sim.gdbstub.driver import Driver, GuestMemory, GuestStuck
from harness.sim.gdbstub.hooks import HookLoop
from harness.sim.gdbstub.host_calls import HostCalls, InstructionCounter
from harness.sim.gdbstub.stub import Stub, TargetEnded
from harness.sim.gdbstub.tensors import MethodTensors
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
    def identity(self) -> NpuIdentity:
        return NpuIdentity.of(self.product, self.macs)


def npu_of(npu: Npu | None, ram: Region | None) -> ModelledNpu | None:
    """Return the NPU of a target, with the memory that its simulator shares; else None."""
    if npu is None or ram is None:
        return None
    return ModelledNpu(npu.product, npu.macs, ram.origin, ram.size)


class NpuRunner(Companion):
    """Runs the guest's command streams on the model of the NPU, and counts them.

    It keeps the first failure. ``run``: None on a board without an NPU, whose programs may still
    have the driver. ``memory``: QEMU's guest memory, shared with the model. ``identity``: None
    without an NPU."""

    def __init__(
        self,
        run: Run | None,
        memory: SharedMemory | None = None,
        identity: NpuIdentity | None = None,
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
        """Record that the guest was ended: its request cannot be served."""
        self.stuck = message
        self._stopped(NpuStop(self._jobs + 1, NpuResult.REFUSED, message))

    def _broken(self, message: str) -> Outcome:
        self._stopped(NpuStop(self._jobs, NpuResult.BROKEN, message))
        return Outcome(Result.UNSUPPORTED, f"the model failed: {message}", status=0)

    def _stopped(self, stop: NpuStop) -> None:
        self._stop = self._stop or stop


_NO_NPU = Outcome(Result.REFUSED, "the board has no NPU", status=0)


class Hooks(Companion):
    """Serves a program, in a thread, from QEMU's start to its end.

    ``npu``: the NPU that the program's driver controls, if it has one."""

    starts_guest = True
    began = False

    def __init__(self, calls: HostCalls, npu: NpuRunner | None) -> None:
        self._calls = calls
        self._npu = npu
        self._executor = ThreadPoolExecutor(1, "gdbstub")
        self._server: Future[int | None] | None = None
        self._console = -1
        self._near, self._far = socket.socketpair()
        self.descriptors = (self._far.fileno(),)
        self.words = (
            *("-chardev", f"socket,id=gdb,fd={self._far.fileno()}"),
            *("-gdb", "chardev:gdb", "-S"),
        )

    def started(self, read_end: int) -> None:
        self._far.close()
        self._console = os.dup(read_end)
        self._server = self._executor.submit(self._serve)

    def finish(self) -> None:
        """Stop when QEMU has ended. Raises the StubError that ended it."""
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits
        self._executor.shutdown()
        self._near.close()
        self._far.close()
        if self._server is not None:
            os.close(self._console)
            try:
                self.status = self._server.result()
            except GuestStuck as stuck:
                assert self._npu is not None, "only its driver refuses"
                self._npu.refuse(str(stuck))

    def _serve(self) -> int | None:
        """Return the program's own exit status; None when QEMU ended in another way."""
        stub, calls = Stub(self._near, self._begins), self._calls
        counter, driver = None, None
        if calls.counted is not None:
            counter = InstructionCounter(stub, calls.counted, self._write_line)
        loop = HookLoop(stub, calls, counter)
        if calls.tensors is not None:
            MethodTensors(stub, calls.tensors, loop.add).attach(calls.method)
        if self._npu is not None:
            memory, npu = GuestMemory(stub, self._npu.memory), self._npu
            driver = Driver(memory, npu.identity, npu.run, self._write_line, loop.call_back)
        try:
            loop.run(driver)
        except TargetEnded as ended:
            return ended.status
        except BaseException:
            stub.kill()  # the program waits for an answer that will not come
            raise
        return None

    def _begins(self) -> None:
        self.began = True

    def _write_line(self, text: str) -> None:
        """Write to the console. Dropped if the pipe is full or the reader has ended."""
        # Opened for each line and closed at once: end-of-file must come from QEMU alone.
        with suppress(BlockingIOError):
            pipe = os.open(f"/proc/self/fd/{self._console}", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, f"{text}\n".encode())
            finally:
                os.close(pipe)


@contextmanager
def modelled(npu: ModelledNpu) -> Iterator[tuple[SharedMemory, NpuProcess]]:
    """Return the guest's RAM, and the NPU's model that works in it. Raises DiskError."""
    with disk_errors("making the memory that the NPU's model shares"):
        made = SharedMemory(npu.ram_bytes, npu.ram)
    with made as memory, NpuProcess(npu.product, npu.macs, memory) as process:
        yield memory, process


@contextmanager
def served(
    npu: ModelledNpu | None, calls: HostCalls, work: Path
) -> Iterator[tuple[NpuRunner, tuple[Companion, ...]]]:
    """Serve the NPU and the host calls of the guest."""
    with ExitStack() as stack:
        runner, process = NpuRunner(None), None
        if npu is not None:
            memory, process = stack.enter_context(modelled(npu))
            runner = NpuRunner(process, memory, npu.identity)
            if not calls.functions:
                stack.enter_context(serving(work, memory, npu.identity, runner.run))
        hooks: tuple[Hooks, ...] = ()
        if calls.needs_hooks:
            hooks = (Hooks(calls, runner if calls.functions else None),)
            stack.callback(hooks[0].finish)
        if process is not None:
            stack.callback(process.stop)  # first, so that no callback above waits for a job
        yield runner, (runner, *hooks)
