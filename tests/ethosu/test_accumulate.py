"""Sums of a window, held against the definition, in one step and in several."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu import accumulate
from harness.ethosu.accumulate import Window

SEED = 3
WINDOW = Window((3, 2), (2, 1), (1, 2), (1, 0, 1, 1), (5, 7))


def taps(padded: np.ndarray) -> np.ndarray:
    """(output y, output x, kernel y, kernel x, channel)."""
    return np.array(
        [
            [
                [[padded[2 * y + ky, x + 2 * kx] for kx in range(2)] for ky in range(3)]
                for x in range(7)
            ]
            for y in range(5)
        ]
    )


@pytest.mark.parametrize("columns", [1, 200, 1 << 23])
def test_a_convolution_does_not_depend_on_its_steps(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one goes some rows at a time, so that its memory is bounded."""
    monkeypatch.setattr(accumulate, "_COLUMNS", columns)
    generator = np.random.default_rng(SEED)
    values = generator.integers(-9, 10, (*WINDOW.needed, 4)).astype(np.float32)
    weights = generator.integers(-9, 10, (5, 3, 2, 4)).astype(np.int16)
    found = accumulate.convolve(values, accumulate.convolution_kernel(weights), WINDOW)
    around = taps(np.pad(values, ((1, 1), (0, 1), (0, 0))))
    assert (found == np.einsum("yxklc,oklc->yxo", around, weights)).all()


def test_valid_elements_are_counted_per_position() -> None:
    inside = taps(np.pad(np.ones((*WINDOW.needed, 1)), ((1, 1), (0, 1), (0, 0))))
    assert (accumulate.valid_counts(WINDOW) == inside.sum((2, 3, 4))).all()


def test_padding_never_wins() -> None:
    """Not over numbers below zero, nor in a minimum over those above."""
    values = np.random.default_rng(SEED).integers(-99, 0, (*WINDOW.needed, 4)).astype(np.int8)
    around = taps(np.pad(values.astype(int), ((1, 1), (0, 1), (0, 0)), constant_values=-999))
    most = accumulate.pool_extreme(values, WINDOW, largest=True)
    assert (most == around.max((2, 3))).all()
    least = accumulate.pool_extreme(-values, WINDOW, largest=False)
    assert (least == -around.max((2, 3))).all()
