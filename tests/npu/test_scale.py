"""How wide the arithmetic of an output is: at each bound the narrow one, and beyond it a wider."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from harness.npu.scale import Scale, ScaleWriter

_MODES = {
    "ScaleMode": {name: name for name in ("kNarrow", "kWide", "kAny")},
    "ScaleFor": {name: name for name in ("kAll", "kChannel", "kPosition")},
}
_MOST = (1 << 31) - 1


def mode(
    limit: int,
    bias: Sequence[int],
    multiplier: Sequence[int],
    shift: Sequence[int],
    zero_point: int = 0,
    halves: bool = True,
) -> str:
    fields = SimpleNamespace()
    writer = ScaleWriter(fields, _MODES, zero_point, limit, [])
    scale = Scale(np.array(multiplier, np.int64), np.array(shift, np.int64), halves)
    writer.write(scale, np.array(bias, np.int64), len(bias))
    return str(fields.mode)


@pytest.mark.parametrize(
    ("at", "beyond"),
    [
        pytest.param((_MOST - 1, [0], [1], [1]), (_MOST, [0], [1], [1]), id="sums"),
        pytest.param((0, [_MOST - 1], [1], [1]), (0, [_MOST], [1], [1]), id="bias"),
        pytest.param((0, [1 - _MOST], [1], [1]), (0, [-_MOST], [1], [1]), id="negative-bias"),
        pytest.param((8, [0], [_MOST], [40]), (8, [0], [_MOST + 1], [40]), id="multiplier"),
        pytest.param((_MOST - 2, [0], [1], [0]), (_MOST - 1, [0], [1], [0]), id="result"),
        pytest.param(
            (_MOST - 12, [0], [1], [0], -10), (_MOST - 11, [0], [1], [0], -10), id="zero-point"
        ),
        pytest.param(
            (1 << 29, [0, 0], [2, 2], [9, 1]), (1 << 29, [0, 0], [8, 8], [9, 1]), id="least-shift"
        ),
    ],
)
def test_numbers_of_32_bits(at: tuple[object, ...], beyond: tuple[object, ...]) -> None:
    assert mode(*at) == "kNarrow"  # type: ignore[arg-type]
    assert mode(*beyond) == "kWide"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "beyond"),
    [
        pytest.param(
            ((1 << 31) - 2, [0], [1 << 31], [0]), ((1 << 31) - 1, [0], [1 << 31], [0]), id="product"
        ),
        pytest.param((0, [0], [1], [61]), (0, [0], [1], [62], 1), id="zero-point"),
        pytest.param((0, [0], [0], [62], 0, False), (0, [0], [0], [63], 0, False), id="shift"),
        pytest.param((0, [0], [1 << 61], [61]), (0, [0], [1 << 61], [62]), id="half"),
    ],
)
def test_numbers_of_64_bits(at: tuple[object, ...], beyond: tuple[object, ...]) -> None:
    assert mode(*at) != "kAny"  # type: ignore[arg-type]
    assert mode(*beyond) == "kAny"  # type: ignore[arg-type]
