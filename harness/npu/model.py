"""Runs a compiled network: ``Network(blob).run(inputs)`` gives its outputs, and what it did.

A ``Network`` keeps what does not change from one inference to the next: decoded operations and
weights. A caller who owns the memory, such as the stand-in, runs a ``DecodedStream``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.formats.ethosu import CONFIG_WORDS, NpuConfig, read_config
from harness.npu import workload
from harness.npu.blob import (
    FAST_SCRATCH,
    INPUTS,
    OUTPUTS,
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
)
from harness.npu.executor import Carried, Executor, Memory
from harness.npu.registers import register_set
from harness.npu.scale import Bytes
from harness.npu.shared_jobs import Operations, Totals
from harness.npu.stream import Operation, State, walk
from harness.npu.u55 import prepare as prepare_u55
from harness.npu.u85 import prepare as prepare_u85

_MAX_OPERATIONS = 20_000  # of a stream with branches: more is a loop that does not end
_PROGRAMS = 32  # command streams kept decoded; a method seldom has more delegates
_LUT_RAM = 2048  # U85
_FAST_SCRATCH_BYTES = 0x100000  # more than any memory mode of Vela uses


@dataclass(frozen=True)
class Stats:
    """What an inference did; ``moved`` is bytes per region and kind of access."""

    config: NpuConfig
    operations: Mapping[str, int]
    macs: int
    moved: Mapping[str, Mapping[str, int]]
    memory: Mapping[str, int]


def memory_of(blob: Blob, actions: Actions) -> dict[str, int]:
    """Bytes by class, as a driver has to provide them: ``inputs`` and ``outputs`` where they have
    regions of their own (0: they are in scratch), ``cache`` of the NPU's SRAM where the container
    says (COP2)."""
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
            self._totals = self._operations.totals()

    def execute(
        self, regions: Mapping[int, Bytes], *, strict: bool = True
    ) -> tuple[Memory, Totals]:
        """One inference. Raises EthosUError and MemoryError."""
        memory = Memory(regions, np.zeros(self._internal_bytes, np.uint8), strict)
        operations = self._operations
        if operations.branches:
            return memory, self._interpret(memory)
        self._executor.run(memory, operations.places, operations.offsets)
        return memory, self._totals

    @property
    def _internal_bytes(self) -> int:
        return self.config.shram_bytes // self.config.cores or _LUT_RAM

    def _interpret(self, memory: Memory) -> Totals:
        """With branches the operations are only known as they come."""
        state, totals, carried = State(), Totals(), Carried()
        total = workload.Work(min(self._work_limit, workload.LOOPING))
        commands, steps, condition = walk(self._words, self._names, state), 0, None
        while operation := next(commands, None):
            steps += 1
            if steps > _MAX_OPERATIONS:
                raise StreamError(f"no STOP after {_MAX_OPERATIONS} operations", operation.offset)
            if operation.name == "BRANCH":
                target = self._branch(operation)
                if not operation.parameter & 1 or _require_known(condition, operation.offset):
                    commands = walk(self._words, self._names, state, target)
                continue
            registers = state.registers(operation.offset)
            job = carried.resolve(self._prepare(operation, registers, self.config))
            total.add(workload.request(job), operation.offset)
            result = self._executor.run_one(job, memory)
            if job.output is not None and job.output.map is not None:
                condition = result
            carried.after(job)
            totals.add(operation.name, job)
        return totals

    def _branch(self, branch: Operation) -> int:
        """The word that it goes to."""
        target = branch.target
        if target % 4 or target >= 4 * len(self._words):
            raise StreamError(f"BRANCH goes to {target:#x}", branch.offset)
        return target // 4


def _require_known(condition: bool | None, offset: int) -> bool:
    """RF_TRUE looks at COND_STATUS, which the last operation has set: true when the one element
    that it wrote is not 0 (``FixupControlFlow`` in regor's ``graphir_optimiser.cpp`` arranges for
    that; the meaning of more elements is not known) (inferred)."""
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

    @property
    def config(self) -> NpuConfig:
        return self.program.config

    def run(self, inputs: Sequence[bytes], *, strict: bool = True) -> tuple[list[bytes], Stats]:
        if len(inputs) != len(self.blob.inputs):
            raise AccessError(f"{len(inputs)} inputs for {len(self.blob.inputs)}", 0)
        regions = self._regions()
        for index, (tensor, content) in enumerate(zip(self.blob.inputs, inputs, strict=True)):
            if len(content) != tensor.size:
                raise AccessError(f"input {index} has {len(content)} bytes, not {tensor.size}", 0)
            _slice(regions, tensor)[:] = np.frombuffer(content, np.uint8)
        memory, totals = self.program.execute(regions, strict=strict)
        if strict:
            self._require_written(memory)
        outputs = [_slice(regions, tensor).tobytes() for tensor in self.blob.outputs]
        needed = memory_of(self.blob, self.actions)
        return outputs, Stats(self.config, totals.counts, totals.macs, totals.moved, needed)

    def _regions(self) -> dict[int, Bytes]:
        """0xA5 everywhere: a byte that is read before it is written does not look like 0."""
        sizes = {SCRATCH: self.blob.scratch_size, FAST_SCRATCH: _FAST_SCRATCH_BYTES}
        for number in (INPUTS, OUTPUTS):
            if size := self.blob.own_region(number):
                sizes[number] = size
        regions = {number: np.full(size, 0xA5, np.uint8) for number, size in sizes.items()}
        regions[WEIGHTS] = self._weights
        return regions

    def _require_written(self, memory: Memory) -> None:
        for index, tensor in enumerate(self.blob.outputs):
            marks = _slice(memory.written, tensor)
            if not marks.all():
                raise Unwritten(index, int(np.argmin(marks)))


def _slice(regions: Mapping[int, Bytes], tensor: IoTensor) -> Bytes:
    region = regions.get(tensor.region)
    end = tensor.offset + tensor.size
    if region is None or end > len(region):
        raise BlobError(f"a tensor ends at {end:#x} of region {tensor.region}, beyond its end", 0)
    return region[tensor.offset : end]


def npu(product: str, macs: int) -> Run:
    """The NPU behind a doorbell, of this product and MAC count. A stream is decoded once."""
    config = read_config(CONFIG_WORDS[product, macs])
    programs: dict[bytes, DecodedStream] = {}

    def run(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        stream = bytes(commands)
        given = {n: np.frombuffer(r, np.uint8) for n, r in enumerate(regions) if r is not None}
        try:
            program = programs.get(stream)
            if program is None:
                if len(programs) >= _PROGRAMS:
                    programs.clear()
                program = programs[stream] = DecodedStream(Actions(config, _words(stream)))
            program.execute(given)
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
