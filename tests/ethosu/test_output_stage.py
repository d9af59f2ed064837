"""The quick ways through the output stage give what exact integers give."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.output_stage import Finish, Scale, scale_exactly

SHAPE = (70, 60, 16)  # more than one step of the quick way


def factors(generator: np.random.Generator, shape: tuple[int, ...]) -> Scale:
    return Scale(generator.integers(1, 1 << 31, shape), generator.integers(20, 40, shape))


@pytest.mark.parametrize("shape", [(1,), (16,), (70, 60, 1)], ids=["one", "channel", "position"])
def test_doubles_equal_integers(shape: tuple[int, ...]) -> None:
    """A scale for all, one per channel, and one per position as in padded average pooling."""
    print("seed 5")
    generator = np.random.default_rng(5)
    sums = generator.integers(-40000, 40000, SHAPE)
    finish = Finish(factors(generator, shape), -7, (-128, 127), np.dtype(np.int8))
    expected = np.clip(scale_exactly(sums, finish.scale) - 7, -128, 127).astype(np.int8)
    assert np.array_equal(finish.apply(sums, 40000.0), expected)


def test_products_beyond_64_bits() -> None:
    """Against Python's own integers."""
    print("seed 6")
    generator = np.random.default_rng(6)
    values = generator.integers(-(1 << 45), 1 << 45, (50,))
    for low in (17, 0):
        scale = Scale(np.array([(1 << 31) - 1]), np.array([low + 24]))
        exact = [(int(v) * ((1 << 31) - 1) + (1 << (low + 23))) >> (low + 24) for v in values]
        expected = np.array([e % (1 << 64) for e in exact], np.uint64).astype(np.int64)
        assert np.array_equal(scale_exactly(values, scale), expected)
