"""A stream's operations by the compiled arithmetic, and by numpy what that has no job for.

A job that cannot be done exactly as it stands, or at all, does nothing: the step in numpy then
does it, or says what is wrong. So errors are those of numpy, word for word.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import jobs, kernel_library
from harness.ethosu.common import Context
from harness.ethosu.errors import EthosUError
from harness.ethosu.jobs import JobFields, Keep, MemoryFields, PackedWeights
from harness.ethosu.memory import WEIGHTS, Bytes, Memory
from harness.ethosu.plan import ConvolutionPlan, CopyPlan, ElementwisePlan, Plan, Prepared

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
    return Arithmetic("compiled", kernel.library, threads or min(2, len(os.sched_getaffinity(0))))


class Compiled:
    """The operations of one stream."""

    def __init__(
        self, arithmetic: Arithmetic, operations: Sequence[tuple[str, Prepared]], internal: int
    ) -> None:
        assert arithmetic.library is not None
        self._library, threads = arithmetic.library, arithmetic.threads
        self._operations = operations
        self._jobs = (JobFields * len(operations))()
        self._keeps = [Keep() for _ in operations]
        self._packed: dict[tuple[object, ...], PackedWeights] = {}
        self._bindable: set[int] = set()
        for index, (_, prepared) in enumerate(operations):
            plan, job = prepared.plan, self._jobs[index]
            if plan is None:
                continue
            large = isinstance(plan, ConvolutionPlan) and plan.macs >= _PARTED
            ready = jobs.fill(job, plan, self._keeps[index], internal, threads if large else 1)
            if not ready:
                job.kind = 0
            elif isinstance(plan, ConvolutionPlan):
                self._bindable.add(index)
        self._tally = _Tally(operations)

    def run(self, context: Context) -> None:
        """The same as one step after the other."""
        memory = _memory(context.memory)
        count, at = len(self._operations), 0
        while at < count:
            done = self._library.hil_npu_run(self._jobs, at, count, ctypes.byref(memory))
            self._tally.add(context, at, done)
            at = done
            if at < count and not self._bound(at, context):
                self._step(at, context)
                at += 1

    def _step(self, index: int, context: Context) -> None:
        name, prepared = self._operations[index]
        prepared.step(context)
        context.counts[name] = context.counts.get(name, 0) + 1

    def _bound(self, index: int, context: Context) -> bool:
        """Whether the job has got weights that it had not: those that are there now."""
        if index not in self._bindable:
            return False
        plan, job, keep = self._operations[index][1].plan, self._jobs[index], Keep()
        assert isinstance(plan, ConvolutionPlan)
        spans = plan.parameters.spans
        try:
            found = [_content(context.memory, span) for span in spans]
            if job.kind and all(a == b for a, b in zip(found, self._expected(job), strict=True)):
                return False
            if not jobs.bind(job, plan, self._weights(plan, found, context), keep):
                return False
        except EthosUError:
            job.kind = 0
            return False
        jobs.expect(job, spans, [np.frombuffer(part, np.uint8) for part in found], keep)
        self._keeps[index] = keep
        return True

    def _expected(self, job: JobFields) -> list[bytes]:
        return [ctypes.string_at(span.expected, span.length) for span in job.span[: job.spans]]

    def _weights(
        self, plan: ConvolutionPlan, contents: Sequence[bytes], context: Context
    ) -> PackedWeights:
        key = (plan.parameters.layout, *contents)
        found = self._packed.get(key)
        if found is None:
            decoded = plan.parameters.decode(context.codec, contents)
            if sum(weights.packed.nbytes for weights in self._packed.values()) > _KEPT:
                self._packed.clear()
            found = jobs.pack(self._library, decoded, plan.depthwise)
            self._packed[key] = found
        return found


class _Tally:
    """What each operation counts, summed up so that a run of them costs one subtraction."""

    def __init__(self, operations: Sequence[tuple[str, Prepared]]) -> None:
        self._keys: dict[tuple[object, ...], int] = {}
        rows = [self._row(name, prepared.plan) for name, prepared in operations]
        self._sums: NDArray[np.int64] = np.zeros((len(rows) + 1, len(self._keys)), np.int64)
        for index, row in enumerate(rows):
            self._sums[index + 1] = self._sums[index]
            for key, count in row:
                self._sums[index + 1, key] += count

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
            sources = [plan.output.ofm]
            if isinstance(plan, ElementwisePlan):
                operands = [plan.first, *([plan.second] if plan.second is not None else [])]
                sources += [o.source for o in operands if o.source is not None]
            else:
                sources.append(plan.ifm)
            entries += [((source.region, source.what), source.size) for source in sources]
        if isinstance(plan, ConvolutionPlan):
            entries.append((("macs",), plan.macs))
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
        if 0 <= number < jobs.REGIONS and len(region):
            fields.base[number], fields.size[number] = region.ctypes.data, len(region)
            if memory.strict:
                fields.marks[number] = memory.written[number].ctypes.data
    fields.internal, fields.internal_size = memory.internal.ctypes.data, len(memory.internal)
    return fields
