"""Runs the jobs of one command stream: descriptions for ``kernel/``, weights, faults."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.npu import kernel_library
from harness.npu.blob import REGION_NAMES, REGIONS, WEIGHTS
from harness.npu.errors import AccessError, Unsupported
from harness.npu.feature_map import FIRST_CHAINING_REGION, FeatureMap
from harness.npu.job import UNBOUNDED, Job, Operand, ParameterReader
from harness.npu.kernel_library import WeightDecoder, Weights, layouts
from harness.npu.scale import Bytes, Integers, Scale, ScaleWriter

_CACHED_BYTES = 1 << 28  # of packed weights
_PARTS = 1 << 23  # a sum of absolute weights times 8-bit parts of the input fits 32 bits below this


@dataclass
class Memory:
    """The memory of a command stream.

    ``regions`` are the caller's own arrays and are changed in place; ``internal`` is the NPU's own
    memory: shared RAM, or the U85's RAM of look-up tables. In strict mode ``written`` has, for each
    region, a 1 for each byte that the NPU has written."""

    regions: Mapping[int, Bytes]
    internal: Bytes
    strict: bool = True
    written: dict[int, Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, region in self.regions.items():
            if not region.flags.c_contiguous or not (region.flags.writeable or number == WEIGHTS):
                raise ValueError(f"region {number} is not bytes that can be written to")
        if self.strict:
            self.written = {n: np.zeros(len(r), np.uint8) for n, r in self.regions.items()}

    def content(self, number: int, address: int, length: int, what: str, offset: int) -> bytes:
        """Return the bytes at an address. Raises AccessError, except for a length of 0."""
        if not length:
            return b""
        region, end = self.regions.get(number), address + length
        if region is None or address < 0 or end > len(region):
            raise self.outside(number, address, end, what, offset)
        return region[address:end].tobytes()

    def outside(self, number: int, low: int, high: int, what: str, offset: int) -> AccessError:
        """Return the error for an access to ``low <= address < high`` outside its region."""
        region = self.regions.get(number)
        if region is None or not 0 <= number < REGIONS:
            return AccessError(f"{what} uses region {number}, which does not exist", offset)
        has = f"region {number} ({REGION_NAMES.get(number, number)}) has {len(region):#x} bytes"
        return AccessError(f"{what} reaches {low:#x}..{high:#x}, {has}", offset)


class Carried:
    """What the NPU carries from one operation to the next: chaining buffers and accumulators."""

    def __init__(self) -> None:
        self._chains: dict[int, FeatureMap] = {}
        self._kept: tuple[int, int, int] | None = None

    def resolve(self, job: Job) -> Job:
        """Replace buffers by the maps that they hold. Raises AccessError, Unsupported."""
        accumulators = job.accumulators
        shape = None if job.output is None else job.output.shape
        kept = self._kept is not None and self._kept == shape
        if accumulators is not None and accumulators.initial == "kKept" and not kept:
            raise Unsupported("ACC_FORMAT.acc_input", "KEEP", job.offset, "nothing was kept")
        if not any(operand.buffer is not None for operand in job.operands):
            return job
        spreads = job.kind == "kElementwise"
        first, second = (self._source(job, one, spreads) for one in (job.first, job.second))
        if accumulators is not None:
            source = self._source(job, accumulators.source, False)
            accumulators = replace(accumulators, source=source)
        return replace(job, first=first, second=second, accumulators=accumulators)

    def _source(self, job: Job, operand: Operand | None, spreads: bool) -> Operand | None:
        if operand is None or operand.buffer is None:
            return operand
        held = self._chains.get(operand.buffer)
        if held is None:
            raise AccessError(f"chaining buffer {operand.buffer} is empty", job.offset)
        for size, whole in zip(held.shape, operand.shape, strict=True):
            if size != whole and not (spreads and size == 1):
                why = f"a buffer of {held.shape} for {operand.shape}"
                register = f"{operand.what}_PRECISION.activation_storage"
                raise Unsupported(register, "CHAINED", job.offset, why)
        return replace(operand, map=held, buffer=None)

    def after(self, job: Job) -> None:
        """Call it after each operation."""
        if job.accumulators is not None:
            keeps = job.output is not None and job.accumulators.keeps
            self._kept = job.output.shape if job.output is not None and keeps else None
        written = None if job.output is None else job.output.map
        if written is not None and written.is_chained:
            self._chains[written.number - FIRST_CHAINING_REGION] = written


@dataclass(frozen=True)
class _Ready:
    """Decoded parameters of a job.

    ``packed``: the weights in the kernel's order. ``largest_sum``: the largest sum of absolute
    weights of an output channel."""

    packed: Weights | None
    largest_sum: int
    scale: Scale
    bias: Integers | None


class Executor:
    """Executes jobs. ``internal``: bytes of memory. Raises ToolMissing, InfraError."""

    def __init__(self, internal: int) -> None:
        self._library = kernel_library.load()
        self._layouts = layouts()
        self._internal = internal
        # Arrays that structures point into: of jobs without parameters, and of each other job.
        self._scales: list[NDArray[Any]] = []
        self._bound: dict[int, list[NDArray[Any]]] = {}
        self._ready: dict[tuple[object, ...], _Ready] = {}
        self._decoder = WeightDecoder(self._library)
        self._jobs: list[Job] = []
        self._fields: Any = None
        self.chains: dict[int, Bytes] = {}
        self.kept: Integers = np.zeros(0, np.int64)
        self._pool = self._library.hil_npu_open()
        weakref.finalize(self, self._library.hil_npu_close, self._pool)

    def describe(self, jobs: Sequence[Job]) -> None:
        """Replace the jobs. Raises Unsupported."""
        self._jobs, self._scales, self._bound = list(jobs), [], {}
        self._fields = (self._layouts.structures["Job"] * len(jobs))()
        for job, fields in zip(jobs, self._fields, strict=True):
            self._describe(job, fields)
            self._make_room(job)

    def _describe(self, job: Job, fields: Any) -> None:
        self._layouts.fill("Job", fields, job)
        if fields.output.table_at < 0:
            fields.output.table_at += self._internal
        if job.copy is None and job.parameters is None:
            _set_scale(job, fields, job.scaling, None, job.limit, self._scales)
            fields.bound = 1

    def _make_room(self, job: Job) -> None:
        """Make room for the chaining buffer and the accumulators that the job leaves."""
        output = job.output
        if output is not None and output.map is not None and output.map.is_chained:
            number, size = output.map.number - FIRST_CHAINING_REGION, output.map.size
            self.chains[number] = _grown(self.chains.get(number, np.zeros(0, np.uint8)), size)
        if output is not None and job.accumulators is not None and job.accumulators.keeps:
            self.kept = _grown(self.kept, math.prod(output.shape))

    def run(self, memory: Memory, places: NDArray[np.int64], offsets: Sequence[int]) -> bool | None:
        """Run the operations of ``places`` in order.

        ``offsets``: their bytes in the stream. Returns whether the last result is not 0; None if it
        has several elements.

        Raises AccessError, Unsupported, MemoryError; the failed operation has changed nothing."""
        fields = self._layouts.structures["Memory"]()
        for number, region in memory.regions.items():
            if 0 <= number < FIRST_CHAINING_REGION and len(region):
                fields.base[number], fields.size[number] = region.ctypes.data, len(region)
                if memory.strict:
                    fields.marks[number] = memory.written[number].ctypes.data
        for number, chain in self.chains.items():
            fields.base[FIRST_CHAINING_REGION + number] = chain.ctypes.data
            fields.size[FIRST_CHAINING_REGION + number] = len(chain)
        fields.internal, fields.internal_size = memory.internal.ctypes.data, len(memory.internal)
        fields.kept, fields.kept_size = self.kept.ctypes.data, len(self.kept)
        fields.pool, fields.condition = self._pool, -1
        count, at = len(places), 0
        while at < count:
            given = self._fields, places.ctypes.data, at, count, ctypes.byref(fields)
            at = self._library.hil_npu_run(*given)
            if at == count:
                break
            index = int(places[at, 0])
            if self._layouts.name_of("Trouble", fields.fault.trouble) == "kParameters":
                self._bind(index, memory)
            else:
                raise self._error(self._jobs[index], fields.fault, memory, offsets[at])
        return bool(fields.condition) if fields.condition >= 0 else None

    def run_one(self, job: Job, memory: Memory) -> bool | None:
        """Run one job; return and raise what ``run`` does."""
        self.describe([job])
        return self.run(memory, np.zeros((1, 5), np.int64), [job.offset])

    def _bind(self, index: int, memory: Memory) -> None:
        """Give a job the weights and scales that are in memory now: a guest may load others."""
        job, fields = self._jobs[index], self._fields[index]
        keep: list[NDArray[Any]] = []
        reader = job.parameters
        assert reader is not None
        contents = [memory.content(*span, what, job.offset) for what, span in reader.named_spans]
        ready = self._prepared(job, reader, contents)
        limit = job.limit
        if ready.packed is not None:
            assert job.first is not None
            limit = ready.largest_sum * job.first.limit
            keep.append(ready.packed)
            fields.weights = ready.packed.ctypes.data
            if limit >= 1 << 53 or (job.kind == "kDepthwise" and ready.largest_sum >= _PARTS):
                raise Unsupported("accumulator", limit, job.offset)
        _set_scale(job, fields, ready.scale, ready.bias, limit, keep)
        if fields.wide and ready.largest_sum >= _PARTS:
            fields.wide = 2
        for place, span, content in zip(fields.span, reader.spans, contents, strict=False):
            place.region, place.address, place.length = span
            keep.append(np.frombuffer(content or bytes(1), np.uint8))
            place.expected = keep[-1].ctypes.data
        fields.spans, fields.bound = len(contents), 1
        self._bound[index] = keep

    def _prepared(self, job: Job, reader: ParameterReader, contents: Sequence[bytes]) -> _Ready:
        key = (reader.layout, *contents)
        ready = self._ready.get(key)
        if ready is None:
            parameters = reader.decode(self._decoder, contents)
            packed, largest_sum = None, 0
            if parameters.weights is not None:
                depthwise = job.kind == "kDepthwise"
                packed, largest_sum = self._decoder.pack(parameters.weights, depthwise)
            cached = sum(0 if r.packed is None else r.packed.nbytes for r in self._ready.values())
            if cached > _CACHED_BYTES:
                self._ready.clear()
            ready = _Ready(packed, largest_sum, parameters.scale, parameters.bias)
            self._ready[key] = ready
        return ready

    def _error(self, job: Job, fault: Any, memory: Memory, offset: int) -> Exception:
        trouble = self._layouts.name_of("Trouble", fault.trouble)
        part = self._layouts.name_of("Part", fault.part)
        if trouble == "kAccumulator":
            bits = 32 if job.accumulators is None else job.accumulators.bits
            return AccessError(f"an accumulator needs more than its {bits} bits", offset)
        if trouble == "kDivisor":
            return Unsupported("IFM2", 0, offset, "as a divisor")
        if trouble == "kIndex" and job.copy is not None:
            largest = job.copy.largest_index
            return AccessError(f"a DMA index is outside 0..{largest}", offset)
        if trouble == "kMemory":
            return MemoryError("for one operation")
        if part == "kTable" and job.output is not None and job.output.look_up is not None:
            number = job.output.look_up.number
            return AccessError(f"table {number} does not fit the RAM", offset)
        if part == "kInternal":
            what = f"DMA writes {fault.high - fault.low} bytes at internal address {fault.low:#x}"
            return AccessError(f"{what}, there are {len(memory.internal):#x}", offset)
        what, region = _part(job, part)
        if trouble == "kReadOnly":
            does = "writes to" if job.copy is not None else "is in"
            return AccessError(f"{what} {does} the read-only weights", offset)
        return memory.outside(region, fault.low, fault.high, what, offset)


def _part(job: Job, part: str) -> tuple[str, int]:
    copy = job.copy
    if copy is not None:
        regions = {"kSource": copy.source_region, "kTarget": copy.target_region}
        if part in regions:
            return "DMA", regions[part]
        return "DMA index", copy.index_region
    source = None if job.accumulators is None else job.accumulators.source
    operands = {"kFirst": job.first, "kSecond": job.second, "kInitial": source}
    operand, output = operands.get(part), job.output
    found = None if operand is None else operand.map
    if found is None and output is not None:
        found = output.map
    assert found is not None
    return found.what, found.number


def _set_scale(
    job: Job,
    fields: Any,
    scale: Scale,
    bias: Integers | None,
    limit: int,
    keep: list[NDArray[Any]],
) -> None:
    """Also sets the width of the sums; ``limit`` bounds them. Raises Unsupported."""
    accumulators, output = job.accumulators, job.output
    fields.wide = int(limit >= 1 << 31)
    if accumulators is not None:
        plain, most = accumulators.is_plain, accumulators.limit
        fields.accumulators.most = 0 if plain and limit < most else most
        limit = min(limit, most) if plain else UNBOUNDED
    if output is None or output.map is None:
        return
    if output.rounding and not scale.is_identity(limit):
        why = "with a scale that is not 1"
        raise Unsupported("OFM_PRECISION.round_mode", output.rounding, job.offset, why)
    writer = ScaleWriter(fields.scale, layouts().enumerations, output.zero_point, limit, keep)
    writer.write(scale, bias, output.shape[2])


def _grown(array: Any, size: int) -> Any:
    if len(array) >= size:
        return array
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
