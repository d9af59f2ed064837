"""Measures how far the outputs of other oracles are from the expected ones.

These differences are recorded and judged by nobody: over a whole network roundings add up. Whether
each operator means the same is for the witness (``witness.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness.export.child.samples import Sample
from harness.export.program import OracleAgreement, TensorSpec, WorstDifference


@dataclass(frozen=True)
class CrossCheck:
    """The outputs by another oracle."""

    name: str
    outputs: list[Sample]


def agreements(
    outputs: Sequence[TensorSpec], expected: Sequence[Sample], cross_checks: Sequence[CrossCheck]
) -> tuple[OracleAgreement, ...]:
    """The worst element of each output, over all input sets, for every check."""
    return tuple(
        OracleAgreement(
            check.name,
            tuple(
                _worst(spec, [s[n] for s in expected], [s[n] for s in check.outputs])
                for n, spec in enumerate(outputs)
            ),
        )
        for check in cross_checks
    )


def _worst(
    spec: TensorSpec, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]
) -> WorstDifference:
    unit = spec.scale or 1.0
    worst = WorstDifference(0.0, 0, (0,) * len(spec.shape))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        difference = np.nan_to_num((a.double() - b.double()).abs().numpy() / unit, nan=np.inf)
        element = tuple(
            int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape)
        )
        if difference[element] > worst.lsb:
            worst = WorstDifference(round(float(difference[element]), 3), number, element)
    return worst
