"""A stream's operations by the compiled arithmetic, and by numpy what that has no job for.

A job that cannot be done exactly as it stands, or at all, does nothing: the step in numpy then
does it, or says what is wrong. So errors are those of numpy, word for word.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import jobs, kernel_library
from harness.ethosu.alike import Operations
from harness.ethosu.common import Context
from harness.ethosu.errors import EthosUError
from harness.ethosu.featuremap import CHAINED, CHAINS, FeatureMap
from harness.ethosu.job_fields import JobFields, MemoryFields, check_layout
from harness.ethosu.job_scales import Keep
from harness.ethosu.jobs import PackedWeights
from harness.ethosu.kernel_codec import KernelCodec
from harness.ethosu.memory import WEIGHTS, Bytes, Memory
from harness.ethosu.plan import (
    ConvolutionPlan,
    CopyPlan,
    ElementwisePlan,
    MatrixPlan,
    OperandPlan,
    Plan,
    maps_of,
)
from harness.ethosu.work import check_step

_PARTED = 1 << 22  # multiplications from which a second core is worth its start
_KEPT = 1 << 28  # bytes of packed weights: more are packed again


@dataclass(frozen=True)
class Arithmetic:
    """How a stream is computed; ``name`` says so in words. ``threads``: of one operation that is
    large."""

    name: str
    library: ctypes.CDLL | None = None
    threads: int = 1


NUMPY = Arithmetic("numpy")


def compiled_arithmetic(threads: int | None = None) -> Arithmetic:
    """The compiled one, on two cores unless there is one; numpy's where there is no compiler."""
    kernel = kernel_library.load()
    if kernel.library is None:
        return Arithmetic(f"numpy ({kernel.lacks})")
    check_layout(kernel.library)
    return Arithmetic("compiled", kernel.library, threads or min(2, len(os.sched_getaffinity(0))))


class Compiled:
    """The operations of one stream."""

    def __init__(self, arithmetic: Arithmetic, operations: Operations, internal: int) -> None:
        assert arithmetic.library is not None
        self._library, threads = arithmetic.library, arithmetic.threads
        self._operations = operations
        self._jobs = (JobFields * len(operations.distinct))()
        self._lanes: dict[tuple[int, ...], Any] = {}
        self._made_of = Keep(self._lanes)
        self._keeps: dict[int, Keep] = {}  # of what is bound
        self._packed: dict[tuple[object, ...], PackedWeights] = {}
        self._codec = KernelCodec(self._library)
        self._bindable: dict[int, ConvolutionPlan] = {}
        self._chains = Chains()
        for index, one in enumerate(operations.distinct):
            prepared = one.prepared
            plan = self._chains.resolved(prepared.plan)
            if plan is not None and self._made(index, plan, internal, threads):
                self._chains.add(index, prepared.chains, plan)
            else:
                self._jobs[index].kind = 0
                self._chains.add(index, prepared.chains, None)
        self._tally = _Tally(operations)
        self._pool = self._library.hil_npu_open()
        weakref.finalize(self, self._library.hil_npu_close, self._pool)

    def _made(self, index: int, plan: Plan, internal: int, threads: int) -> bool:
        parts = 1
        if isinstance(plan, ConvolutionPlan):
            self._bindable[index] = plan
            parts = threads if plan.macs >= _PARTED else 1
        made = jobs.fill(self._jobs[index], plan, self._made_of, internal, parts)
        if not made:
            self._bindable.pop(index, None)
        return made

    def run(self, context: Context) -> None:
        """The same as one step after the other."""
        memory = _memory(context.memory)
        memory.pool = self._pool
        self._chains.put_into(memory)
        places = self._operations.places.ctypes.data
        count, first, at = len(self._operations), 0, 0
        while at < count:
            at = self._library.hil_npu_run(self._jobs, places, at, count, ctypes.byref(memory))
            if at < count and not self._bound(self._operations.kind(at), context):
                self._tally.add(context, first, at)
                self._step(at, context)
                first = at = at + 1
        self._tally.add(context, first, at)

    def _step(self, index: int, context: Context) -> None:
        operations = self._operations
        one, kind = operations.of(index), operations.kind(index)
        check_step(one.asked.elements, operations.offset(index))
        self._chains.show(kind, context)
        operations.prepared(index).step(context)
        self._chains.keep(kind, context)
        context.counts[one.operation.name] = context.counts.get(one.operation.name, 0) + 1

    def _bound(self, index: int, context: Context) -> bool:
        """Whether the job has got weights that it had not: those that are there now."""
        plan = self._bindable.get(index)
        if plan is None:
            return False
        job, keep = self._jobs[index], Keep(self._lanes)
        spans = plan.parameters.spans
        try:
            found = [_content(context.memory, span) for span in spans]
            if job.kind and all(a == b for a, b in zip(found, self._expected(job), strict=True)):
                return False
            if not jobs.bind(job, plan, self._weights(plan, found), keep):
                return False
        except EthosUError:
            job.kind = 0
            return False
        jobs.expect(job, spans, [np.frombuffer(part, np.uint8) for part in found], keep)
        self._keeps[index] = keep
        return True

    def _expected(self, job: JobFields) -> list[bytes]:
        return [ctypes.string_at(span.expected, span.length) for span in job.span[: job.spans]]

    def _weights(self, plan: ConvolutionPlan, contents: Sequence[bytes]) -> PackedWeights:
        key = (plan.parameters.layout, *contents)
        found = self._packed.get(key)
        if found is None:
            decoded = plan.parameters.decode(self._codec, contents)
            if sum(weights.packed.nbytes for weights in self._packed.values()) > _KEPT:
                self._packed.clear()
            found = jobs.pack(self._library, decoded, plan.depthwise)
            self._packed[key] = found
        return found


class Chains:
    """The U85's chaining buffers: regions for jobs, arrays of the context for steps in numpy."""

    def __init__(self) -> None:
        self._written: dict[int, FeatureMap] = {}  # by jobs, at the operation that is added
        self._before: dict[int, dict[int, FeatureMap]] = {}
        self._by: dict[int, FeatureMap] = {}
        self._stores: dict[int, Bytes] = {}

    def resolved(self, plan: Plan | None) -> Plan | None:
        """With what the buffers hold that it reads, where a job has written them."""
        if not isinstance(plan, ElementwisePlan):
            return plan
        second = None if plan.second is None else self._source(plan.second)
        return replace(plan, first=self._source(plan.first), second=second)

    def _source(self, operand: OperandPlan) -> OperandPlan:
        held = None if operand.buffer is None else self._written.get(operand.buffer)
        return operand if held is None else replace(operand, source=held, buffer=None)

    def add(self, index: int, buffer: int | None, plan: Plan | None) -> None:
        """The next operation, which writes ``buffer``; without a plan it does so in numpy."""
        if self._written:
            self._before[index] = dict(self._written)
        if buffer is None:
            return
        self._written.pop(buffer, None)
        if plan is not None and not isinstance(plan, CopyPlan):
            held = self._written[buffer] = self._by[index] = plan.output.ofm
            if len(self._stores.get(buffer, b"")) < held.size:
                self._stores[buffer] = np.zeros(held.size, np.uint8)

    def put_into(self, fields: MemoryFields) -> None:
        for buffer, store in self._stores.items():
            fields.base[CHAINS + buffer] = store.ctypes.data
            fields.size[CHAINS + buffer] = len(store)

    def show(self, index: int, context: Context) -> None:
        """To a step in numpy what jobs have written."""
        for buffer, held in self._before.get(index, {}).items():
            content = self._stores[buffer][: held.size].view(held.dtype)
            context.chained[buffer] = content.reshape(held.shape).copy()

    def keep(self, index: int, context: Context) -> None:
        """What a step in numpy has written in place of its job."""
        held = self._by.get(index)
        if held is not None:
            written = context.chained[held.region - CHAINS]
            content = np.ascontiguousarray(written, held.dtype).view(np.uint8).reshape(-1)
            self._stores[held.region - CHAINS][: held.size] = content


class _Tally:
    """What each operation counts, summed up so that a run of them costs one subtraction."""

    def __init__(self, operations: Operations) -> None:
        self._keys: dict[tuple[object, ...], int] = {}
        rows = [self._row(one.operation.name, one.prepared.plan) for one in operations.distinct]
        table: NDArray[np.int64] = np.zeros((len(rows), len(self._keys)), np.int64)
        for index, row in enumerate(rows):
            for key, count in row:
                table[index, key] += count
        self._sums: NDArray[np.int64] = np.zeros((len(operations) + 1, len(self._keys)), np.int64)
        np.cumsum(table[operations.places[:, 0]], axis=0, out=self._sums[1:])

    def _row(self, name: str, plan: Plan | None) -> list[tuple[int, int]]:
        if plan is None:
            return []
        entries: list[tuple[tuple[object, ...], int]] = [(("count", name), 1)]
        if isinstance(plan, CopyPlan):
            region, _, length = plan.source
            entries.append(((region, "DMA"), length))
            if plan.target_region is not None:
                entries.append(((plan.target_region, "DMA"), length))
        else:
            sources = [source for source in maps_of(plan) if source.what != CHAINED]
            entries += [((source.region, source.what), source.size) for source in sources]
        if isinstance(plan, ConvolutionPlan | MatrixPlan):
            entries.append((("macs",), plan.macs))
        if isinstance(plan, ConvolutionPlan):
            weights = plan.parameters.weight_spans
            for number, (region, _, length) in enumerate(plan.parameters.spans):
                entries.append(((region, "WEIGHT" if number < weights else "SCALE"), length))
        return [(self._keys.setdefault(key, len(self._keys)), count) for key, count in entries]

    def add(self, context: Context, first: int, last: int) -> None:
        if first == last:
            return
        counted = (self._sums[last] - self._sums[first]).tolist()
        for key, count in zip(self._keys, counted, strict=True):
            if not count:
                continue
            if key[0] == "count":
                name = str(key[1])
                context.counts[name] = context.counts.get(name, 0) + count
            elif key[0] == "macs":
                context.macs += count
            else:
                context.memory.count(key[0], key[1], count)  # type: ignore[arg-type]


def _content(memory: Memory, span: tuple[int, int, int]) -> bytes:
    region, address, length = span
    if not length:
        return b""
    return memory.region(region, address, address + length, "WEIGHT", 0)[
        address : address + length
    ].tobytes()


def is_usable(regions: Mapping[int, Bytes]) -> bool:
    """Whether all are plain bytes that may be written to where the NPU may write."""
    return all(
        region.flags.c_contiguous and (region.flags.writeable or number == WEIGHTS)
        for number, region in regions.items()
    )


def _memory(memory: Memory) -> MemoryFields:
    fields = MemoryFields()
    for number, region in memory.regions.items():
        if 0 <= number < CHAINS and len(region):
            fields.base[number], fields.size[number] = region.ctypes.data, len(region)
            if memory.strict:
                fields.marks[number] = memory.written[number].ctypes.data
    fields.internal, fields.internal_size = memory.internal.ctypes.data, len(memory.internal)
    return fields
