"""Runs a compiled network: ``Network(blob).run(inputs)`` gives its outputs, and what it did.

A ``Network`` keeps what does not change from one inference to the next: decoded operations and
weights. A caller who owns the memory, such as the stand-in, runs a ``DecodedStream``.

Operations that differ only in addresses share a job. A transpose or a pixel shuffle becomes up to
half a million pools that differ only in where their maps begin: the first is checked and becomes a
job, the others are addresses.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.formats.ethosu import CONFIG_WORDS, NpuConfig, read_config
from harness.npu import workload
from harness.npu.blob import (
    FAST_SCRATCH,
    INPUTS,
    OUTPUTS,
    REGION_NAMES,
    SCRATCH,
    WEIGHTS,
    Actions,
    Blob,
    IoTensor,
    read_actions,
    read_blob,
)
from harness.npu.doorbell import (
    STATUS_BUS_ERROR,
    STATUS_IRQ,
    STATUS_PARSE_ERROR,
    Outcome,
    Result,
    Run,
)
from harness.npu.errors import (
    AccessError,
    BlobError,
    StreamError,
    Unsupported,
    Unwritten,
    WorkLimit,
    check_limit,
)
from harness.npu.executor import Carried, Executor, Memory
from harness.npu.job import Job
from harness.npu.scale import Bytes
from harness.npu.stream import Operation, Registers, RegisterSet, RegisterState, register_set, walk
from harness.npu.u55 import prepare as prepare_u55
from harness.npu.u85 import prepare as prepare_u85

_MAX_OPERATIONS = 20_000  # of a stream with branches: more is a loop that does not end
_PROGRAMS = 32  # command streams kept decoded; a method seldom has more delegates
_LUT_RAM = 2048  # U85
_FAST_SCRATCH_BYTES = 0x100000  # more than any memory mode of Vela uses

Prepare = Callable[[Operation, Registers, NpuConfig], Job]
Addresses = tuple[str, str, str]
_COLUMNS = 5  # of a Place in kernel/jobs.h: job, whether it is moved, three addresses


@dataclass
class Stats:
    """The statistics of an inference.

    It counts operations by name, MACs, and bytes moved by region and kind of access. ``memory``: as
    ``memory_of``."""

    config: NpuConfig
    operations: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    moved: dict[str, dict[str, int]] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)

    def add(self, name: str, job: Job, times: int = 1) -> None:
        self.operations[name] = self.operations.get(name, 0) + times
        self.macs += job.macs * times
        for region, kind, length in _accesses(job):
            kinds = self.moved.setdefault(REGION_NAMES.get(region, str(region)), {})
            kinds[kind] = kinds.get(kind, 0) + length * times


def _accesses(job: Job) -> list[tuple[int, str, int]]:
    copy = job.copy
    if copy is not None:
        found = [(copy.source_region, "DMA", copy.total)]
        if not copy.internal:
            found.append((copy.target_region, "DMA", copy.total))
        if copy.indexed != "kNone":
            found.append((copy.index_region, "DMA index", 4 * copy.rows * copy.planes))
        return found
    found = [(one.number, one.what, one.size) for one in job.maps if not one.is_chained]
    named = () if job.parameters is None else job.parameters.named_spans
    return [*found, *((region, kind, length) for kind, (region, _, length) in named)]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Operations that share a job.

    ``addresses``: the registers in which they may differ (first input, second input, output; or
    both ends of a copy); "" if there is none."""

    job: int
    request: workload.JobNeeds
    addresses: Addresses


class Operations:
    """The operations of a stream.

    ``jobs``: in the order of their first operation. ``places``: a row for each operation, as the
    kernel's ``Place``. ``offsets``: its byte in the stream. ``branches``: the stream has one, so
    its operations are only known at run time."""

    def __init__(self, prepare: Prepare, config: NpuConfig) -> None:
        self.jobs: list[Job] = []
        self.places: NDArray[np.int64] = np.zeros((0, _COLUMNS), np.int64)
        self.offsets = array("q")
        self.branches = False
        self._names: list[str] = []
        self._prepare, self._config = prepare, config
        self._carried = Carried()

    def read(self, words: Sequence[int], names: RegisterSet, total: workload.Work) -> None:
        """Read up to STOP or the first branch.

        Raises WorkLimit if ``total`` does not allow an operation, and what ``walk`` and ``prepare``
        raise."""
        state, rows = RegisterState(), array("q")
        kinds: dict[tuple[object, ...], _Kind] = {}
        last, kind = ("", 0, -1), None
        for operation in walk(words, names, state):
            offset, name, parameter = operation.offset, operation.name, operation.parameter
            if name == "BRANCH":
                self.branches = True
                return
            self.offsets.append(offset)
            check_limit("the stream", len(self.offsets), workload.OPERATIONS, "operations", offset)
            now = name, parameter, state.changes
            if now != last:
                last, kind = now, kinds.get((name, parameter, *state.others.values()))
                if kind is not None:
                    self._carried.after(self.jobs[kind.job])
            if kind is None:
                rows.extend((len(self.jobs), 0, 0, 0, 0))
                kind = self._first(operation, state, total)
                if kind is not None:
                    kinds[(name, parameter, *state.others.values())] = kind
                continue
            total.again(kind.request, offset)
            address = state.addresses.get
            first, second, output = kind.addresses
            rows.extend((kind.job, 1, address(first, 0), address(second, 0), address(output, 0)))
        self.places = np.frombuffer(rows, np.int64).reshape(-1, _COLUMNS)

    def _first(
        self, operation: Operation, state: RegisterState, total: workload.Work
    ) -> _Kind | None:
        """Prepare a job. Returns None if no other operation may share it."""
        registers = state.registers(operation.offset)
        job = self._carried.resolve(self._prepare(operation, registers, self._config))
        request = workload.request(job)
        total.add(request, operation.offset)
        self._carried.after(job)
        self.jobs.append(job)
        self._names.append(operation.name)
        what = "operations that are not alike"
        check_limit("the stream", len(self.jobs), workload.DISTINCT, what, operation.offset)
        addresses = address_registers(job)
        if addresses is None:
            return None
        return _Kind(len(self.jobs) - 1, request, addresses)

    def __len__(self) -> int:
        return len(self.places)

    def stats(self) -> Stats:
        """Return the sums of one inference."""
        stats = Stats(self._config)
        times = np.bincount(self.places[:, 0], minlength=len(self.jobs)).tolist()
        for name, job, count in zip(self._names, self.jobs, times, strict=True):
            stats.add(name, job, count)
        return stats


def address_registers(job: Job) -> Addresses | None:
    """Return ``_Kind.addresses`` of a job; None if it depends on more than that.

    That is on addresses in other ways, or on other operations. BASE0 is the start of a map with one
    tile (``split_tiles``)."""
    if job.copy is not None:
        return "DMA0_SRC", "DMA0_DST", ""
    if job.parameters is not None:
        return None
    if job.accumulators is not None and not job.accumulators.is_plain:
        return None
    if any(len(one.tile) > 1 or one.is_chained for one in job.maps):
        return None
    if job.output is None or job.output.map is None:
        return None
    maps = [None if one is None else one.map for one in (job.first, job.second)]
    first, second = ("" if one is None else f"{one.what}_BASE0" for one in maps)
    return first, second, f"{job.output.map.what}_BASE0"


def memory_of(blob: Blob, actions: Actions) -> dict[str, int]:
    """Return bytes by class, as a driver has to provide them.

    ``inputs`` and ``outputs`` where they have regions of their own (0: they are in scratch),
    ``cache`` of the NPU's SRAM where the container says (COP2)."""
    found = {
        "commands": 4 * len(actions.words),
        "weights": len(blob.weights),
        "scratch": blob.scratch_size,
        "inputs": blob.own_region(INPUTS),
        "outputs": blob.own_region(OUTPUTS),
    }
    if actions.requires is not None:
        found["cache"] = actions.requires.cache_bytes
    return found


class DecodedStream:
    """A command stream, decoded once. Raises what ``prepare`` and ``workload`` raise."""

    def __init__(self, actions: Actions, work_limit: int = workload.UNITS) -> None:
        self.config = actions.config
        self._words = actions.words
        self._names = register_set(actions.config.product)
        self._prepare = prepare_u85 if actions.config.product == "u85" else prepare_u55
        self._work_limit = work_limit
        self._executor = Executor(self._internal_bytes)
        self._operations = Operations(self._prepare, self.config)
        self._operations.read(self._words, self._names, workload.Work(work_limit))
        if not self._operations.branches:
            self._executor.describe(self._operations.jobs)
            self._stats = self._operations.stats()

    def execute(self, regions: Mapping[int, Bytes], *, strict: bool = True) -> tuple[Memory, Stats]:
        """One inference. Raises EthosUError and MemoryError."""
        memory = Memory(regions, np.zeros(self._internal_bytes, np.uint8), strict)
        operations = self._operations
        if operations.branches:
            return memory, self._interpret(memory)
        self._executor.run(memory, operations.places, operations.offsets)
        return memory, self._stats

    @property
    def _internal_bytes(self) -> int:
        return self.config.shram_bytes // self.config.cores or _LUT_RAM

    def _interpret(self, memory: Memory) -> Stats:
        """Interprets a stream with branches, whose operations are only known as they come."""
        state, stats, carried = RegisterState(), Stats(self.config), Carried()
        total = workload.Work(min(self._work_limit, workload.LOOPING))
        commands, steps, condition = walk(self._words, self._names, state), 0, None
        while operation := next(commands, None):
            steps += 1
            if steps > _MAX_OPERATIONS:
                raise StreamError(f"no STOP after {_MAX_OPERATIONS} operations", operation.offset)
            if operation.name == "BRANCH":
                target = operation.target
                if target % 4 or target >= 4 * len(self._words):
                    raise StreamError(f"BRANCH goes to {target:#x}", operation.offset)
                if not operation.parameter & 1 or _require_known(condition, operation.offset):
                    commands = walk(self._words, self._names, state, target // 4)
                continue
            registers = state.registers(operation.offset)
            job = carried.resolve(self._prepare(operation, registers, self.config))
            total.add(workload.request(job), operation.offset)
            result = self._executor.run_one(job, memory)
            if job.output is not None and job.output.map is not None:
                condition = result
            carried.after(job)
            stats.add(operation.name, job)
        return stats


def _require_known(condition: bool | None, offset: int) -> bool:
    """Check what RF_TRUE reads: COND_STATUS, which the last operation has set.

    It is true when the one element that it wrote is not 0 (``FixupControlFlow`` in regor's
    ``graphir_optimiser.cpp`` arranges for that; the meaning of more elements is not known)
    (inferred)."""
    if condition is None:
        why = "the last result is not one element"
        raise Unsupported("BRANCH.branch_cond", "RF_TRUE", offset, why)
    return condition


class Network:
    """A blob ready to run many times. ``work_limit``: as ``workload.Work`` counts.

    Raises WorkLimit at once when a stream without branches asks for more, else as it runs.
    """

    def __init__(self, data: bytes, work_limit: int = workload.UNITS) -> None:
        self.blob: Blob = read_blob(data)
        self.actions = read_actions(self.blob.commands)
        self.program = DecodedStream(self.actions, work_limit)
        self._weights = np.frombuffer(self.blob.weights, np.uint8)
        for tensor in (*self.blob.inputs, *self.blob.outputs):
            if tensor.region not in (SCRATCH, FAST_SCRATCH, INPUTS, OUTPUTS):
                raise BlobError(f"a tensor is in region {tensor.region}", 0)

    def run(self, inputs: Sequence[bytes], *, strict: bool = True) -> tuple[list[bytes], Stats]:
        if len(inputs) != len(self.blob.inputs):
            raise AccessError(f"{len(inputs)} inputs for {len(self.blob.inputs)}", 0)
        regions = self._regions()
        for index, (tensor, content) in enumerate(zip(self.blob.inputs, inputs, strict=True)):
            if len(content) != tensor.size:
                raise AccessError(f"input {index} has {len(content)} bytes, not {tensor.size}", 0)
            _slice(regions, tensor)[:] = np.frombuffer(content, np.uint8)
        memory, stats = self.program.execute(regions, strict=strict)
        for index, tensor in enumerate(self.blob.outputs if strict else ()):
            marks = _slice(memory.written, tensor)
            if not marks.all():
                raise Unwritten(index, int(np.argmin(marks)))
        outputs = [_slice(regions, tensor).tobytes() for tensor in self.blob.outputs]
        return outputs, replace(stats, memory=memory_of(self.blob, self.actions))

    def _regions(self) -> dict[int, Bytes]:
        """0xA5 everywhere: a byte that is read before it is written does not look like 0."""
        sizes = {SCRATCH: self.blob.scratch_size, FAST_SCRATCH: _FAST_SCRATCH_BYTES}
        for number in (INPUTS, OUTPUTS):
            if size := self.blob.own_region(number):
                sizes[number] = size
        regions = {number: np.full(size, 0xA5, np.uint8) for number, size in sizes.items()}
        regions[WEIGHTS] = self._weights
        return regions


def _slice(regions: Mapping[int, Bytes], tensor: IoTensor) -> Bytes:
    region = regions.get(tensor.region)
    end = tensor.offset + tensor.size
    if region is None or end > len(region):
        raise BlobError(f"a tensor ends at {end:#x} of region {tensor.region}, beyond its end", 0)
    return region[tensor.offset : end]


def npu(product: str, macs: int) -> Run:
    """Return the NPU that a doorbell starts; it decodes a stream once."""
    config = read_config(CONFIG_WORDS[product, macs])

    @lru_cache(_PROGRAMS)
    def decoded(stream: bytes) -> DecodedStream:
        return DecodedStream(Actions(config, _words(stream)))

    def run(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        stream = bytes(commands)
        given = {n: np.frombuffer(r, np.uint8) for n, r in enumerate(regions) if r is not None}
        try:
            decoded(stream).execute(given)
        except (Unsupported, WorkLimit) as error:
            return Outcome(Result.UNSUPPORTED, str(error), status=0)
        except MemoryError as error:  # the program decides how much an operation wants
            return Outcome(Result.UNSUPPORTED, f"more memory than there is: {error}", status=0)
        except (StreamError, AccessError) as error:
            wrong = STATUS_PARSE_ERROR if isinstance(error, StreamError) else STATUS_BUS_ERROR
            return Outcome(Result.FAULT, str(error), STATUS_IRQ | wrong, error.offset)
        return Outcome(qread=len(stream))

    return run


def _words(stream: bytes) -> tuple[int, ...]:
    if len(stream) % 4:
        raise StreamError("the command stream is not a whole number of words", len(stream))
    return struct.unpack(f"<{len(stream) // 4}I", stream)
