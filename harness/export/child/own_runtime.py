"""Runs a program with the runtime of ExecuTorch's wheel on this machine: its portable, optimised
and quantised kernels, and XNNPACK."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from executorch.extension.pybindings.portable_lib import (
    _load_for_executorch_from_buffer,  # the public ``runtime`` module takes files alone
)

from harness.export.child.samples import Sample


def run_with_runtime(program: bytes, samples: Sequence[Sample]) -> list[Sample]:
    """The outputs of the method ``forward``. Raises RuntimeError, as the runtime does."""
    loaded = _load_for_executorch_from_buffer(program)  # it reads the buffer in place
    results = []
    for sample in samples:
        outputs = loaded.run_method("forward", tuple(sample))
        results.append(tuple(_tensor(each).clone() for each in outputs))
    return results


def _tensor(value: object) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)
