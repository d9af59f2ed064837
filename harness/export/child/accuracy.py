"""Compares outputs of a program with those of others, as figures.

Float model: SQNR is the signal to quantisation noise ratio, 10 log10(sum of squares of the float
model's elements / sum of squares of the differences), over all elements of an output and all
samples. An element is clipped where the float model's is beyond what the output's quantised type
can hold.

Other oracles: the differences are recorded and not judged, because over a whole network roundings
add up. The witness (``witness.py``) checks whether each operator means the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from harness.export.child.samples import Sample
from harness.export.program import OracleAgreement, OutputAccuracy, TensorSpec, WorstDifference

_MOST_DB = 200.0  # equal outputs have no noise, and JSON has no infinity
_RANGES = {8: (-128, 127), 16: (-32768, 32767)}


def measured(
    outputs: Sequence[TensorSpec], bits: int, real: Sequence[Sample], program: Sequence[Sample]
) -> tuple[OutputAccuracy, ...]:
    """``real`` and ``program``: what both give for the same samples; ``bits`` of an activation."""
    return tuple(
        _of_output(spec, bits, [r[n] for r in real], [p[n] for p in program])
        for n, spec in enumerate(outputs)
        if real and real[0][n].is_floating_point()
    )


def _of_output(
    spec: TensorSpec, bits: int, real: Sequence[torch.Tensor], program: Sequence[torch.Tensor]
) -> OutputAccuracy:
    wanted = torch.stack([r.double() for r in real])
    noise = torch.stack([p.double() for p in program]) - wanted
    return OutputAccuracy(
        spec.name,
        len(real),
        _decibels(float(wanted.square().sum()), float(noise.square().sum())),
        _top1(real, program),
        _clipped(spec, bits, wanted),
    )


def _decibels(signal: float, noise: float) -> float:
    if not noise:
        return _MOST_DB
    if not math.isfinite(signal + noise):  # an infinity or NaN on one side
        return -_MOST_DB
    return round(max(10 * math.log10(signal / noise), -_MOST_DB), 2) if signal else -_MOST_DB


def _top1(real: Sequence[torch.Tensor], program: Sequence[torch.Tensor]) -> float | None:
    """Return the share of samples with the same largest element, for rows of classes."""
    shape = real[0].shape
    if len(shape) not in (1, 2) or shape[-1] < 2 or real[0].numel() != shape[-1]:
        return None
    same = sum(int(r.argmax()) == int(p.argmax()) for r, p in zip(real, program, strict=True))
    return round(same / len(real), 4)


def _clipped(spec: TensorSpec, bits: int, wanted: torch.Tensor) -> float | None:
    """Return the share of elements beyond the output's quantiser by over half a step."""
    if spec.scale is None or spec.zero_point is None or not wanted.numel():
        return None
    low, high = ((limit - spec.zero_point) * spec.scale for limit in _RANGES[bits])
    beyond = (wanted < low - spec.scale / 2) | (wanted > high + spec.scale / 2)
    return round(float(beyond.double().mean()), 4)


def agreements(
    outputs: Sequence[TensorSpec],
    expected: Sequence[Sample],
    others: Mapping[str, Sequence[Sample]],
) -> tuple[OracleAgreement, ...]:
    """Return the worst element of each output, over all input sets, for the ``others`` by name."""
    return tuple(
        OracleAgreement(
            name,
            tuple(
                _worst(spec, [s[n] for s in expected], [s[n] for s in theirs])
                for n, spec in enumerate(outputs)
            ),
        )
        for name, theirs in others.items()
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
