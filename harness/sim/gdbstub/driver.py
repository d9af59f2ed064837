"""Emulates the functions of ethos-u-core-driver; the program's own do not run.

Names, arguments, results and messages are those of its public header and source
(include/ethosu_driver.h, src/ethosu_driver.c). The NPU has done its work when the function that
starts it returns; ``ethosu_inference_begin`` and ``ethosu_inference_end`` are called in the program
when the driver calls them. Its other callbacks (caches, power, mutexes, semaphores) are not called,
and PMU counters read 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.sim.gdbstub.stub import Stub, StubError

if TYPE_CHECKING:
    from harness.npu.doorbell import NpuIdentity, Outcome, Run, SharedMemory

RESULTS_ONLY = (
    "ethos-u : cycle_cnt : 0 cycles (a functional stand-in: results, not time; PMU counters read 0)"
)
BEGIN, END = CALLBACKS = ("ethosu_inference_begin", "ethosu_inference_end")
_COMPARED = ("product", "macs_per_cc", "cmd_stream_version", "num_axi_sram", "num_axi_ext")


class GuestStuck(Exception):
    """The program's request cannot be served, and it would wait for ever."""


class DriverError(Exception):
    """The driver refuses; ``lines`` is what it logs."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


def first_command_stream(data: bytes) -> ethosu.CommandStream:
    """Return the first command stream; of the two containers the driver knows only COP1."""
    if data[:4] != ethosu.COP1:
        first, wanted = (int.from_bytes(magic, "little") for magic in (data[:4], ethosu.COP1))
        raise DriverError(f"Custom Operator Payload: {first} is not correct, expected {wanted:x}")
    if len(data) % 4:
        raise DriverError(f"custom_data_size=0x{len(data):x} not a multiple of 4")
    try:
        stream = next(ethosu.command_streams(data), None)
    except ethosu.UnknownAction as error:
        raise DriverError(f"UNSUPPORTED driver_action_command: {error.action}") from None
    except MalformedFile as error:
        raise DriverError(
            f"Custom Operator Payload: the action at byte {error.offset} is cut off"
        ) from None
    if stream is None:
        raise DriverError("Custom Operator Payload: there is no command stream in it")
    return stream


def verify_config(npu: tuple[int, int], optimizer: tuple[int, int]) -> None:
    """Compare CONFIG and ID registers with the stream's. Raises DriverError."""
    ours, theirs = ethosu.config_fields(npu[0]), ethosu.config_fields(optimizer[0])
    names = [n for n in _COMPARED if n in ours and n in theirs and ours[n] != theirs[n]]
    names += ["custom_dma"] if theirs["custom_dma"] > ours["custom_dma"] else []
    lines = [
        f"NPU config mismatch. npu.{name}={ours[name]}, optimizer.{name}={theirs[name]}"
        for name in names
    ]
    major, minor, patch = ethosu.architecture(npu[1])
    wanted_major, wanted_minor, wanted_patch = ethosu.architecture(optimizer[1])
    if major != wanted_major or minor < wanted_minor:
        lines.append(
            f"NPU arch mismatch. npu.arch={major}.{minor}.{patch}, "
            f"optimizer.arch={wanted_major}.{wanted_minor}.{wanted_patch}"
        )
    if lines:
        raise DriverError(*lines)


_PIECE = 1024  # bytes that are written together when one of them has changed
_ALIGN = 16
_FAST_MEMORY = 2  # the base address that the driver replaces by its own fast memory
_MOST_REGIONS = 8
_END_REACHED = 1 << 5  # of STATUS
_PMU = "ETHOSU_PMU_"
Argument = Callable[[int], int]  # the n-th word of a call's arguments


class GuestMemory:
    """Reads and writes shared memory in place; copies the rest through the debugger interface."""

    def __init__(self, stub: Stub, shared: SharedMemory | None = None) -> None:
        self._stub = stub
        self._shared = shared
        self._before: dict[int, bytes] = {}  # what was copied, by address

    def read(self, address: int, size: int) -> bytes:
        shared = self._in_place(address, size)
        return self._copied(address, size) if shared is None else bytes(shared)

    def view(self, address: int, size: int) -> memoryview:
        shared = self._in_place(address, size)
        if shared is not None:
            return shared
        self._before[address] = self._copied(address, size)
        return memoryview(bytearray(self._before[address]))

    def commit(self, address: int, view: memoryview) -> None:
        """Write only what has changed: writing is slow."""
        before = self._before.pop(address, None)
        if before is None:
            return
        for at in range(0, len(view), _PIECE):
            piece = bytes(view[at : at + _PIECE])
            if piece != before[at : at + _PIECE]:
                self._stub.write(address + at, piece)

    def _copied(self, address: int, size: int) -> bytes:
        try:
            return self._stub.read(address, size)
        except StubError as error:
            raise GuestStuck(
                f"the program gave its NPU's driver {size} bytes at 0x{address:x}, and not all of "
                "them are memory"
            ) from error

    def _in_place(self, address: int, size: int) -> memoryview | None:
        shared = self._shared
        if shared is None or not shared.base <= address <= address + size <= shared.end:
            return None
        return shared.at(address, size)


@dataclass(frozen=True)
class _Job:
    """The data for ``ethosu_wait``."""

    outcome: Outcome
    user_argument: int


class Driver:
    """One NPU, and the state that the program gave its driver.

    ``log`` takes lines for the console. ``call_back`` calls a function of the program, if it has
    that function, with two arguments; the registers of the current call are lost.
    """

    def __init__(
        self,
        memory: GuestMemory,
        identity: NpuIdentity | None,
        run: Run,
        log: Callable[[str], None],
        call_back: Callable[[str, int, int], None],
    ) -> None:
        self._memory = memory
        self._identity = identity
        self._run = run
        self._log = log
        self._call_back = call_back
        self._announced = False
        self._handles: dict[int, tuple[int, int]] = {}  # driver -> its fast memory
        self._jobs: dict[int, _Job] = {}  # driver -> what was started and not waited for

    def call(self, name: str, argument: Argument) -> int:
        """Perform a call. Returns the result for r0, and for r1 if it has 64 bits."""
        if name.startswith(_PMU):
            return 0
        return _FUNCTIONS[name](self, argument)

    def _init(self, argument: Argument) -> int:
        self._handles[argument(0)] = (argument(2), argument(3))
        return 0

    def _deinit(self, argument: Argument) -> int:
        self._handles.pop(argument(0), None)
        return 0

    def _nothing(self, _argument: Argument) -> int:
        return 0

    def _reserve(self, _argument: Argument) -> int:
        if not self._handles:
            raise GuestStuck(
                "the program called ethosu_reserve_driver before ethosu_init; the real driver "
                "would wait for ever"
            )
        return next(iter(self._handles))

    def _release(self, argument: Argument) -> int:
        """Wait for a job that nobody waited for."""
        handle = argument(0)
        if handle in self._jobs:
            self._finish(handle)
        return 0

    def _invoke(self, argument: Argument) -> int:
        handle = argument(0)
        started = self._invoke_async(argument)
        return self._finish(handle) if started == 0 else started

    def _invoke_async(self, argument: Argument) -> int:
        if not self._announced:
            self._announced = True
            self._log(RESULTS_ONLY)
        handle, *words, user_argument = (argument(n) for n in range(7))
        try:
            if handle in self._jobs:
                raise DriverError("Inference already running, or waiting to be cleared...")
            outcome = self._start(handle, words, user_argument)
        except DriverError as error:
            for line in (*error.lines, "Failed to invoke inference."):
                self._error(line)
            return -1
        self._jobs[handle] = _Job(outcome, user_argument)
        return 0

    def _wait(self, argument: Argument) -> int:
        """Blocking or not: the NPU is never still at work."""
        handle = argument(0)
        if handle not in self._jobs:
            self._error("Inference job not running...")
            return -2
        return self._finish(handle)

    def _finish(self, handle: int) -> int:
        job = self._jobs[handle]
        self._call_back(END, handle, job.user_argument)
        del self._jobs[handle]
        return self._report(job.outcome)

    def _start(self, handle: int, words: Sequence[int], user_argument: int) -> Outcome:
        custom, custom_size, bases, sizes, count = words
        stream = first_command_stream(self._memory.read(custom, custom_size))
        if count > _MOST_REGIONS:
            raise DriverError(f"{count} base addresses, and the NPU has {_MOST_REGIONS}")
        regions = self._regions(handle, bases, sizes, count)
        if stream.npu is not None and self._identity is not None:
            verify_config((self._identity.config, self._identity.id), stream.npu)
        commands = custom + stream.start
        if commands % _ALIGN:
            raise DriverError(f"Command stream addr 0x{commands:x} not aligned to 16 bytes")
        for number, (address, _) in enumerate(regions):
            if address % _ALIGN:
                raise DriverError(f"Base addr {number}: 0x{address:x} not aligned to 16 bytes")
        self._call_back(BEGIN, handle, user_argument)
        views = [self._memory.view(*region) if region[1] else None for region in regions]
        outcome = self._run(self._memory.view(commands, stream.size), views)
        for (address, _), view in zip(regions, views, strict=True):
            if view is not None:
                self._memory.commit(address, view)
        return outcome

    def _regions(self, handle: int, bases: int, sizes: int, count: int) -> list[tuple[int, int]]:
        """Address and size of each; the guest's array is changed as the driver changes it."""
        addresses = list(struct.unpack(f"<{count}Q", self._memory.read(bases, 8 * count)))
        if not sizes:
            raise GuestStuck(
                "the program gives no sizes of its base addresses (base_addr_size is null); the "
                "stand-in needs them"
            )
        lengths = list(struct.unpack(f"<{count}I", self._memory.read(sizes, 4 * count)))
        fast, fast_size = self._handles.get(handle, (0, 0))
        if fast and count > _FAST_MEMORY:
            if lengths[_FAST_MEMORY] > fast_size:
                raise DriverError(
                    f"Fast memory area too small. fast_memory_size={fast_size}, "
                    f"base_addr_size={lengths[_FAST_MEMORY]}"
                )
            addresses[_FAST_MEMORY], lengths[_FAST_MEMORY] = fast, fast_size
            place = bases + 8 * _FAST_MEMORY
            view = self._memory.view(place, 8)
            view[:] = struct.pack("<Q", fast)
            self._memory.commit(place, view)
        return list(zip(addresses, lengths, strict=True))

    def _report(self, outcome: Outcome) -> int:
        """Write the lines of a failure. Returns the result of ``ethosu_wait``."""
        if not outcome.result:
            return 0
        prefix = {1: "stopped", 2: "refused", 3: "does not support"}[int(outcome.result)]
        self._error(f"the NPU stand-in {prefix}: {outcome.message}")
        self._error("NPU error(s) occured during inference.")  # the driver's spelling
        end = int(bool(outcome.status & _END_REACHED))
        self._error(
            f"NPU status=0x{outcome.status:08x}, qread={outcome.qread}, cmd_end_reached={end}"
        )
        return -1

    def _error(self, text: str) -> None:
        self._log(f"E: {text} (stand-in)")


def handled(name: str) -> bool:
    """Whether a function of this name is one of the driver's that are done here."""
    return name.startswith(_PMU) or name in _FUNCTIONS


_FUNCTIONS: Mapping[str, Callable[[Driver, Argument], int]] = {
    "ethosu_init": Driver._init,
    "ethosu_deinit": Driver._deinit,
    "ethosu_soft_reset": Driver._nothing,
    "ethosu_request_power": Driver._nothing,
    "ethosu_release_power": Driver._nothing,
    "ethosu_reserve_driver": Driver._reserve,
    "ethosu_release_driver": Driver._release,
    "ethosu_invoke_v3": Driver._invoke,
    "ethosu_invoke_async": Driver._invoke_async,
    "ethosu_wait": Driver._wait,
}
