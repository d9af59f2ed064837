"""How far two oracles are from each other, in units of the last place of each output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from harness.export.program import OracleAgreement, TensorSpec, WorstDifference
from harness.export.routes import Rival
from harness.export.source import Sample


def agreements(
    outputs: Sequence[TensorSpec], expected: Sequence[Sample], rivals: Sequence[Rival]
) -> tuple[OracleAgreement, ...]:
    """The worst element of each output, over all input sets, for every rival."""
    return tuple(
        OracleAgreement(
            rival.name,
            tuple(
                _worst(spec, [s[n] for s in expected], [s[n] for s in rival.outputs])
                for n, spec in enumerate(outputs)
            ),
        )
        for rival in rivals
    )


def _worst(
    spec: TensorSpec, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]
) -> WorstDifference:
    unit = spec.scale or 1.0
    worst = WorstDifference(0.0, 0, (0,) * len(spec.shape))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        difference = np.nan_to_num((a.double() - b.double()).abs().numpy() / unit, nan=np.inf)
        place = np.unravel_index(int(difference.argmax()), difference.shape)
        if difference[place] > worst.lsb:
            element = tuple(int(i) for i in place)
            worst = WorstDifference(round(float(difference[place]), 3), number, element)
    return worst
