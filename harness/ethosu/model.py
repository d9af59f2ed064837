"""The verb: ``run(blob, inputs) -> (outputs, Stats)``.

``Network`` keeps what does not change from one inference to the next: decoded operations and
weights. ``execute`` is the same for a caller who owns the memory, such as the stand-in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.ethosu import work
from harness.ethosu.alike import Operations
from harness.ethosu.blob import Actions, Blob, IoTensor, read_actions, read_blob
from harness.ethosu.codec import Codec
from harness.ethosu.common import Context
from harness.ethosu.compiled import Arithmetic, Compiled, compiled_arithmetic, is_usable
from harness.ethosu.errors import AccessError, BlobError, StreamError, Unsupported, Unwritten
from harness.ethosu.loops import Loops
from harness.ethosu.memory import (
    FAST_SCRATCH,
    INPUTS,
    OUTPUTS,
    REGION_NAMES,
    SCRATCH,
    WEIGHTS,
    Bytes,
    Memory,
)
from harness.ethosu.registers import register_set
from harness.ethosu.stream import (
    NO_EFFECT,
    Operation,
    Registers,
    Write,
    decode_at,
    survey,
)
from harness.ethosu.u55 import engine as engine_u55
from harness.ethosu.u85 import engine as engine_u85
from harness.formats.cop import NpuConfig

# What a stream with branches may do: more is a loop that does not end.
_MAX_STEPS = 1_000_000
_MAX_OPERATIONS = 20_000
_LUT_RAM = 2048  # U85
_FAST_SCRATCH_BYTES = 0x100000  # more than any memory mode of Vela uses


@dataclass(frozen=True)
class Stats:
    """What an inference did; ``moved`` is bytes per region and kind of access, ``arithmetic`` how
    it was computed, which changes nothing but the time."""

    config: NpuConfig
    operations: Mapping[str, int]
    macs: int
    moved: Mapping[str, Mapping[str, int]]
    memory: Mapping[str, int]
    arithmetic: str


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
    """A command stream, decoded once. Several may share a ``codec`` and so its process."""

    def __init__(
        self,
        actions: Actions,
        codec: Codec | None = None,
        work_limit: int = work.UNITS,
        arithmetic: Arithmetic | None = None,
    ) -> None:
        self.config = actions.config
        self._words = actions.words
        self._names = register_set(actions.config.product)
        self._engine = engine_u85 if actions.config.product == "u85" else engine_u55
        self._decoded: dict[tuple[object, ...], object] = {}
        self._codec = codec or Codec()
        found = survey(self._words, self._names)
        self._branches = found.branches
        self._work_limit = work_limit
        self._operations = Operations(self._engine.prepare, self.config)
        if not self._branches:
            work.check_operations(found.operations)
            self._operations.read(self._words, self._names, work.Work(work_limit))
        chosen = arithmetic or compiled_arithmetic()
        self.arithmetic = chosen.name
        self._compiled = None
        if chosen.library is not None and not self._branches:
            self._compiled = Compiled(chosen, self._operations, self._internal_bytes)

    def execute(self, regions: Mapping[int, Bytes], *, strict: bool = True) -> Context:
        memory = Memory(regions, np.zeros(self._internal_bytes, np.uint8), strict)
        context = Context(self.config, memory, self._decoded, self._codec)
        if self._branches:
            self._interpret(context)
        elif self._compiled is not None and is_usable(regions):
            self._compiled.run(context)
        else:
            for index in range(len(self._operations)):
                self._operations.prepared(index).step(context)
                _count(context, self._operations.of(index).operation.name)
        return context

    @property
    def _internal_bytes(self) -> int:
        return self.config.shram_bytes // self.config.cores or _LUT_RAM

    def _interpret(self, context: Context) -> None:
        """With branches the operations are only known as they come."""
        values: dict[str, int] = {}
        total = work.Work(min(self._work_limit, work.LOOPING))
        at, steps, loops = 0, 0, Loops()
        while at < len(self._words):
            item, at = decode_at(self._words, at, self._names)
            steps += 1
            if steps > _MAX_STEPS:
                raise StreamError(f"no STOP within {_MAX_STEPS} commands", item.offset)
            if isinstance(item, Write):
                values[item.register] = item.value
            elif item.name == "STOP":
                return
            elif item.name == "BRANCH":
                at = self._branch(item, at, context)
                if 4 * at <= item.offset:
                    loops.back(item.offset, values, context)
            elif item.name not in NO_EFFECT:
                registers = Registers(dict(values), item.offset)
                total.add(work.asked(item, registers), item.offset)
                self._engine.prepare(item, registers, self.config).step(context)
                _count(context, item.name)
                _require_end(context, item.offset)
        raise StreamError("the stream has no STOP", 4 * len(self._words))

    def _branch(self, item: Operation, following: int, context: Context) -> int:
        """RF_TRUE looks at COND_STATUS, which the last operation has set: true when the one
        element that it wrote is not 0 (``FixupControlFlow`` in regor's ``graphir_optimiser.cpp``
        arranges for that; the meaning of more elements is not known) (inferred).
        """
        if item.target % 4 or item.target >= 4 * len(self._words):
            raise StreamError(f"BRANCH goes to {item.target:#x}", item.offset)
        if item.parameter & 1:
            if context.condition is None:
                why = "the last result is not one element"
                raise Unsupported("BRANCH.branch_cond", "RF_TRUE", item.offset, why)
            if not context.condition:
                return following
        return item.target // 4


def _count(context: Context, name: str) -> None:
    context.counts[name] = context.counts.get(name, 0) + 1


def _require_end(context: Context, offset: int) -> None:
    operations = sum(context.counts.values())
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
        codec: Codec | None = None,
        work_limit: int = work.UNITS,
        arithmetic: Arithmetic | None = None,
    ) -> None:
        self.blob: Blob = read_blob(data, named_data)
        self.actions = read_actions(self.blob.commands)
        self.program = DecodedStream(self.actions, codec, work_limit, arithmetic)
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
        context = self.program.execute(regions, strict=strict)
        if strict:
            self._require_written(context.memory)
        outputs = [_slice(regions, tensor).tobytes() for tensor in self.blob.outputs]
        stats = _stats(context, memory_of(self.blob, self.actions), self.program.arithmetic)
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


def _stats(context: Context, needed: Mapping[str, int], arithmetic: str) -> Stats:
    moved: dict[str, dict[str, int]] = {}
    for (region, kind), count in sorted(context.memory.moved.items()):
        moved.setdefault(REGION_NAMES.get(region, str(region)), {})[kind] = count
    return Stats(context.config, dict(context.counts), context.macs, moved, needed, arithmetic)
