"""SQNR, top-1 agreement and clipping are what their definitions say."""

from __future__ import annotations

import math

import pytest

from harness.export.program import TensorSpec
from tests.late import Late

accuracy = Late("harness.export.child.accuracy")
torch = Late("torch")


def _spec(scale: float | None = None, zero_point: int | None = None) -> TensorSpec:
    return TensorSpec("output0", "float32", (1, 4), (0, 1), scale, zero_point)


def _row(*values: float) -> tuple[object]:
    return (torch.tensor([values]),)


def test_sqnr_is_of_all_samples_together() -> None:
    real = [_row(3.0, 0.0, 0.0, 4.0), _row(0.0, 5.0, 0.0, 0.0)]
    program = [_row(3.0, 0.0, 0.0, 4.5), _row(0.5, 5.0, 0.0, 0.0)]
    (figure,) = accuracy.measured([_spec()], 8, real, program)
    assert figure.sqnr_db == pytest.approx(10 * math.log10(50 / 0.5), abs=0.01)
    assert figure.samples == 2


def test_equal_outputs_have_the_most_decibels_and_no_signal_the_least() -> None:
    same = [_row(1.0, 2.0, 3.0, 4.0)]
    assert accuracy.measured([_spec()], 8, same, same)[0].sqnr_db == 200
    silent = [_row(0.0, 0.0, 0.0, 0.0)]
    assert accuracy.measured([_spec()], 8, silent, same)[0].sqnr_db == -200


def test_top1_is_the_share_of_samples_with_the_same_largest_element() -> None:
    real = [_row(0.0, 1.0, 0.0, 0.0), _row(1.0, 0.0, 0.0, 0.0)]
    program = [_row(0.0, 0.9, 0.0, 0.0), _row(0.0, 0.1, 0.0, 0.0)]
    assert accuracy.measured([_spec()], 8, real, program)[0].top1 == 0.5


def test_an_image_has_no_top1() -> None:
    image = [(torch.ones(1, 2, 3, 3),)]
    assert accuracy.measured([_spec()], 8, image, image)[0].top1 is None


@pytest.mark.parametrize(("bits", "clipped"), [(8, 0.5), (16, 0.0)])
def test_elements_beyond_the_quantised_range_are_clipped(bits: int, clipped: float) -> None:
    """127 steps of 0.5 are 63.5; half a step more still rounds to it."""
    real = [_row(63.7, 64.0, -70.0, 0.0)]
    (figure,) = accuracy.measured([_spec(0.5, 0)], bits, real, real)
    assert figure.clipped == clipped


def test_an_integer_output_has_no_accuracy() -> None:
    index = [(torch.tensor([3]),)]
    assert accuracy.measured([_spec()], 8, index, index) == ()


@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_a_value_that_is_not_a_number_has_the_least_decibels(odd: float) -> None:
    """NaN is below no budget, and no database keeps it."""
    good, bad = [_row(1.0, 2.0, 3.0, 4.0)], [_row(1.0, odd, 3.0, 4.0)]
    assert accuracy.measured([_spec()], 8, bad, good)[0].sqnr_db == -200
    assert accuracy.measured([_spec()], 8, good, bad)[0].sqnr_db == -200
