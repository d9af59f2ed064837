"""The verb: ``run(blob, inputs) -> (outputs, Stats)``.

``Network`` keeps what does not change from one inference to the next: decoded operations and
weights. ``execute`` is the same for a caller who owns the memory, such as the stand-in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.formats.cop import NpuConfig
from harness.npu import work
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
from harness.npu.errors import AccessError, BlobError, StreamError, Unsupported, Unwritten
from harness.npu.executor import Carried, Executor, Memory
from harness.npu.operations import Operations, Totals
from harness.npu.registers import register_set
from harness.npu.scale import Bytes
from harness.npu.stream import (
    NO_EFFECT,
    Operation,
    Registers,
    Write,
    decode_at,
    survey,
)
from harness.npu.u55.operations import prepare as prepare_u55
from harness.npu.u85.operations import prepare as prepare_u85


class Loops:
    """Finds loops of a stream that never end: they come back to a branch with nothing changed.

    Everything that an NPU's next step depends on is registers, memory and what it keeps between
    operations. It is compared the second, third, fifth, ninth ... time that a branch goes back,
    which costs little however long the loop is; a loop that counts for ever is not noticed.
    """

    def __init__(self) -> None:
        self._turns: dict[int, int] = {}  # by the place of the branch
        self._seen: dict[int, bytes] = {}

    def back(
        self,
        place: int,
        values: Mapping[str, int],
        condition: bool | None,
        memory: Memory,
        executor: Executor,
    ) -> None:
        """A branch goes back. Raises StreamError when it did so in the same state before."""
        turns = self._turns[place] = self._turns.get(place, 0) + 1
        looks = turns & (turns - 1) == 0
        if not looks and (turns - 1) & (turns - 2):
            return
        state = _state(values, condition, memory, executor)
        if looks:
            self._seen[place] = state
        elif self._seen[place] == state:
            raise StreamError(f"a loop changes nothing and never ends, after {turns} turns", place)


def _state(
    values: Mapping[str, int], condition: bool | None, memory: Memory, executor: Executor
) -> bytes:
    digest = hashlib.blake2b(repr((sorted(values.items()), condition)).encode())
    for number, region in sorted(memory.regions.items()):
        if number != WEIGHTS:
            digest.update(region.tobytes())
    digest.update(memory.internal.tobytes())
    for number, chain in sorted(executor.chains.items()):
        digest.update(repr((number, len(chain))).encode() + chain.tobytes())
    digest.update(executor.kept.tobytes())
    return digest.digest()


# What a stream with branches may do: more is a loop that does not end.
_MAX_STEPS = 1_000_000
_MAX_OPERATIONS = 20_000
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

    def region(number: int, tensors: Sequence[IoTensor]) -> int:
        return max((t.offset + t.size for t in tensors if t.region == number), default=0)

    found = {
        "commands": 4 * len(actions.words),
        "weights": len(blob.weights),
        "scratch": blob.scratch_size,
        "inputs": region(INPUTS, blob.inputs),
        "outputs": region(OUTPUTS, blob.outputs),
    }
    if actions.requires is not None:
        found["cache"] = actions.requires.cache_bytes
    return found


class DecodedStream:
    """A command stream, decoded once. ``threads``: of one large operation; two unless there is one
    core. Raises what ``prepare`` and the limits of ``work`` raise."""

    def __init__(
        self, actions: Actions, work_limit: int = work.UNITS, threads: int | None = None
    ) -> None:
        self.config = actions.config
        self._words = actions.words
        self._names = register_set(actions.config.product)
        self._prepare = prepare_u85 if actions.config.product == "u85" else prepare_u55
        found = survey(self._words, self._names)
        self._branches = found.branches
        self._work_limit = work_limit
        self._executor = Executor(self._internal_bytes, threads)
        self._operations = Operations(self._prepare, self.config)
        if not self._branches:
            work.check_operations(found.operations)
            self._operations.read(self._words, self._names, work.Work(work_limit))
            self._executor.describe(self._operations.jobs)
            self._totals = self._operations.totals()

    def execute(
        self, regions: Mapping[int, Bytes], *, strict: bool = True
    ) -> tuple[Memory, Totals]:
        """One inference. Raises EthosUError and MemoryError."""
        memory = Memory(regions, np.zeros(self._internal_bytes, np.uint8), strict)
        if self._branches:
            return memory, self._interpret(memory)
        operations = self._operations
        self._executor.run(memory, operations.places, operations.offsets)
        return memory, self._totals

    @property
    def _internal_bytes(self) -> int:
        return self.config.shram_bytes // self.config.cores or _LUT_RAM

    def _interpret(self, memory: Memory) -> Totals:
        """With branches the operations are only known as they come."""
        values: dict[str, int] = {}
        total, totals = work.Work(min(self._work_limit, work.LOOPING)), Totals()
        at, steps, loops, carried, condition = 0, 0, Loops(), Carried(), None
        while at < len(self._words):
            item, at = decode_at(self._words, at, self._names)
            steps += 1
            if steps > _MAX_STEPS:
                raise StreamError(f"no STOP within {_MAX_STEPS} commands", item.offset)
            if isinstance(item, Write):
                values[item.register] = item.value
            elif item.name == "STOP":
                return totals
            elif item.name == "BRANCH":
                at = self._branch(item, at, condition)
                if 4 * at <= item.offset:
                    loops.back(item.offset, values, condition, memory, self._executor)
            elif item.name not in NO_EFFECT:
                registers = Registers(dict(values), item.offset)
                total.add(work.request(item, registers), item.offset)
                job = carried.resolve(self._prepare(item, registers, self.config))
                result = self._executor.run_one(job, memory)
                if job.output is not None and job.output.map is not None:
                    condition = result
                carried.after(job)
                totals.add(item.name, job)
                _require_end(totals, item.offset)
        raise StreamError("the stream has no STOP", 4 * len(self._words))

    def _branch(self, item: Operation, following: int, condition: bool | None) -> int:
        """RF_TRUE looks at COND_STATUS, which the last operation has set: true when the one
        element that it wrote is not 0 (``FixupControlFlow`` in regor's ``graphir_optimiser.cpp``
        arranges for that; the meaning of more elements is not known) (inferred).
        """
        if item.target % 4 or item.target >= 4 * len(self._words):
            raise StreamError(f"BRANCH goes to {item.target:#x}", item.offset)
        if item.parameter & 1:
            if condition is None:
                why = "the last result is not one element"
                raise Unsupported("BRANCH.branch_cond", "RF_TRUE", item.offset, why)
            if not condition:
                return following
        return item.target // 4


def _require_end(totals: Totals, offset: int) -> None:
    operations = sum(totals.counts.values())
    if operations > _MAX_OPERATIONS:
        raise StreamError(f"no STOP after {operations} operations", offset)


class Network:
    """A blob ready to run many times. ``work_limit``: as ``work.Work`` counts.

    Raises WorkLimit at once when a stream without branches asks for more, else as it runs.
    """

    def __init__(
        self,
        data: bytes,
        named_data: Mapping[str, bytes] | None = None,
        work_limit: int = work.UNITS,
        threads: int | None = None,
    ) -> None:
        self.blob: Blob = read_blob(data, named_data)
        self.actions = read_actions(self.blob.commands)
        self.program = DecodedStream(self.actions, work_limit, threads)
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
        stats = _stats(self.config, totals, memory_of(self.blob, self.actions))
        return outputs, stats

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


def run(blob: bytes, inputs: Sequence[bytes], *, strict: bool = True) -> tuple[list[bytes], Stats]:
    """One inference; a caller with many keeps a ``Network``."""
    return Network(blob).run(inputs, strict=strict)


def _slice(regions: Mapping[int, Bytes], tensor: IoTensor) -> Bytes:
    region = regions.get(tensor.region)
    end = tensor.offset + tensor.size
    if region is None or end > len(region):
        raise BlobError(f"a tensor ends at {end:#x} of region {tensor.region}, beyond its end", 0)
    return region[tensor.offset : end]


def _stats(config: NpuConfig, totals: Totals, needed: Mapping[str, int]) -> Stats:
    moved: dict[str, dict[str, int]] = {}
    for (region, kind), count in sorted(totals.moved.items()):
        moved.setdefault(REGION_NAMES.get(region, str(region)), {})[kind] = count
    return Stats(config, dict(totals.counts), totals.macs, moved, needed)
