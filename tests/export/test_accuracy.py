"""Protects the figures of the accuracy: their definition, and that each is a number."""

from __future__ import annotations

import pytest

from harness.export.program import TensorSpec
from tests.late import Late

accuracy = Late("harness.export.child.accuracy")
torch = Late("torch")


def measured(real: list[list[float]], program: list[list[float]]) -> tuple[float, float, float]:
    """Of an int8 output whose type holds -12.8 to 12.7."""
    spec = TensorSpec("output0", "float32", (len(real[0]),), (0,), 0.1, 0)
    samples = [[(torch.tensor(each),) for each in side] for side in (real, program)]
    (found,) = accuracy.measured((spec,), 8, *samples)
    return found.sqnr_db, found.top1, found.clipped


def test_the_definitions() -> None:
    real = [[3.0, 4.0], [0.0, 20.0]]
    program = [[3.0, 3.0], [0.0, 18.0]]
    assert measured(real, program) == (19.29, 0.5, 0.25)  # 10 log10(425 / 5)


def test_equal_outputs_have_200_db() -> None:
    assert measured([[1.0, 2.0]], [[1.0, 2.0]])[0] == 200


@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_what_is_no_number_is_no_accuracy(odd: float) -> None:
    """NaN is below no budget, and no database keeps it."""
    assert measured([[1.0, odd]], [[1.0, 2.0]])[0] == -200
    assert measured([[1.0, 2.0]], [[1.0, odd]])[0] == -200
