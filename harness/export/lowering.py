"""How a program for a CPU under an operating system is made, by the exporter's name for it.

No torch here. In place of a core's name, ``ExportRequest.compile_target`` has one of LOWERINGS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuLowering:
    """``quantised``: to int8, with a scale per output channel for weights, else it stays float32.
    ``xnnpack``: what XNNPACK's partitioner wants is XNNPACK's; else every operator is a kernel of
    ExecuTorch's, and between quantised ones the values are float32 (``quantized_decomposed``)."""

    quantised: bool
    xnnpack: bool


LOWERINGS: Mapping[str, CpuLowering] = {
    "portable-fp32": CpuLowering(quantised=False, xnnpack=False),
    "portable-int8": CpuLowering(quantised=True, xnnpack=False),
    "xnnpack-fp32": CpuLowering(quantised=False, xnnpack=True),
    "xnnpack-int8": CpuLowering(quantised=True, xnnpack=True),
}
