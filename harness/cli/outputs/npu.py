"""Of `npu`."""

from __future__ import annotations

from typing_extensions import NotRequired, TypedDict

from harness.export.estimates import Cycles, Layer


class NpuStats(TypedDict):
    npu: str
    operations: dict[str, int]
    macs: int
    moved: dict[str, dict[str, int]]
    memory: dict[str, int]
    arithmetic: str  # "compiled", or "numpy" and why


class NpuRun(NpuStats):
    outputs: list[str]


class NpuListing(TypedDict):
    npu: str
    lines: list[str]


class NpuEstimate(TypedDict):
    """What Vela expects; nothing of it is measured. ``clock`` in Hz."""

    npu: str
    system_config: str
    memory_mode: str
    clock: float
    cycles: Cycles
    macs: int
    memory: dict[str, int]
    moved: dict[str, int]
    layers: list[Layer]
    milliseconds: float
    utilisation: float


class NpuDelegates(TypedDict):
    delegates: list[NpuStats]
    estimates: NotRequired[list[NpuEstimate]]  # with --cycles


class NpuCompared(TypedDict):
    model: str
    estimates: list[NpuEstimate]


class Smaller(TypedDict):
    delegate: int
    input_set: int
    trouble: str
    operators: list[str]
    whole: int
    defect: str | None
    files: list[str]


class NpuReduced(TypedDict):
    reduced: Smaller | None
