"""SQNR, top-1 agreement and clipping are what their definitions say."""

from __future__ import annotations


@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_a_value_that_is_no_number_has_the_least_decibels(odd: float) -> None:
    """NaN is below no budget, and no database keeps it."""
    good, bad = [_row(1.0, 2.0, 3.0, 4.0)], [_row(1.0, odd, 3.0, 4.0)]
    assert accuracy.measured([_spec()], 8, bad, good)[0].sqnr_db == -200
    assert accuracy.measured([_spec()], 8, good, bad)[0].sqnr_db == -200
