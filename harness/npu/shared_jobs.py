"""The jobs of a stream without branches: operations that differ only in addresses share one.

A transpose or a pixel shuffle becomes up to half a million pools that differ in nothing but where
their maps begin. The first of them is checked and becomes a job; the others are addresses.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.formats.ethosu import NpuConfig
from harness.npu import workload
from harness.npu.blob import REGION_NAMES
from harness.npu.errors import check_limit
from harness.npu.executor import Carried
from harness.npu.job import Job
from harness.npu.registers import RegisterSet
from harness.npu.stream import Operation, Registers, State, walk

Prepare = Callable[[Operation, Registers, NpuConfig], Job]
Addresses = tuple[str, str, str]
_COLUMNS = 5  # of a Place in kernel/jobs.h: job, whether it is moved, three addresses


@dataclass
class Totals:
    """Counts of operations by name, MACs, and bytes moved by region and kind of access."""

    counts: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    moved: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, name: str, job: Job, times: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + times
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
    if job.parameters is not None:
        weights = job.parameters.weight_spans
        for number, (region, _, length) in enumerate(job.parameters.spans):
            found.append((region, "WEIGHT" if number < weights else "SCALE", length))
    return found


@dataclass(frozen=True, slots=True)
class _Kind:
    """Operations that share a job. ``addresses``: the registers in which they may differ (first
    input, second input, output; or both ends of a copy); "" if there is none."""

    job: int
    request: workload.Request
    addresses: Addresses
    drops_accumulators: bool


class Operations:
    """``jobs``: in the order of their first operation. ``places``: a row for each operation, as the
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
        """Reads up to STOP or the first branch. Raises WorkLimit if ``total`` does not allow an
        operation, and what ``walk`` and ``prepare`` raise."""
        state, rows = State(), array("q")
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
            if kind.drops_accumulators:
                self._carried.drop_accumulators()
        self.places = np.frombuffer(rows, np.int64).reshape(-1, _COLUMNS)

    def _first(self, operation: Operation, state: State, total: workload.Work) -> _Kind | None:
        """Prepares a job. Returns None if no other operation may share it."""
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
        return _Kind(len(self.jobs) - 1, request, addresses, job.accumulators is not None)

    def __len__(self) -> int:
        return len(self.places)

    def totals(self) -> Totals:
        """The totals of one inference."""
        totals = Totals()
        times = np.bincount(self.places[:, 0], minlength=len(self.jobs)).tolist()
        for name, job, count in zip(self._names, self.jobs, times, strict=True):
            totals.add(name, job, count)
        return totals


def address_registers(job: Job) -> Addresses | None:
    """``_Kind.addresses`` of a job; None if the job depends on addresses in other ways, or on other
    operations. BASE0 is the start of a map with one tile (``split_tiles``)."""
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
