"""Inputs that did not arrive where the program has them.

By direct drive the inputs are a region of their own, in which each has a place that Vela chose, in
any order. Whoever puts them one after another gives the NPU another's bytes; what it makes of them
can be computed, and is as good as a confession where the runner's outputs are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from harness.npu.blob import INPUTS, IoTensor
from harness.npu.model import Network

_ROUNDED = 16  # a buffer of Arm's driver begins at a multiple of it


@dataclass(frozen=True)
class Misplaced:
    """``delegate`` with its inputs one after another: where they are then, and should be."""

    delegate: int
    network: Network
    actual: tuple[int, ...]
    right: tuple[int, ...]

    def __str__(self) -> str:
        def offsets(places: Sequence[int]) -> str:
            return ", ".join(map(str, places))

        return (
            f"the inputs of delegate {self.delegate}: the runner's outputs are those that it gives "
            f"with its inputs one after another (at {offsets(self.actual)}), and their places in "
            f"the program are {offsets(self.right)}"
        )


def one_after_another(delegate: int, blob: bytes) -> Misplaced | None:
    """None where that is right."""
    network = Network(blob)
    inputs = network.blob.inputs
    if any(tensor.region != INPUTS for tensor in inputs):
        return None
    right, actual = tuple(tensor.offset for tensor in inputs), _packed(inputs)
    if actual == right:
        return None
    moved = (replace(t, offset=at) for t, at in zip(inputs, actual, strict=True))
    network.blob = replace(network.blob, inputs=tuple(moved))
    return Misplaced(delegate, network, actual, right)


def _packed(tensors: Sequence[IoTensor]) -> tuple[int, ...]:
    sizes = [-(-tensor.size // _ROUNDED) * _ROUNDED for tensor in tensors]
    return tuple(accumulate(sizes[:-1], initial=0))
