"""Protects the one place where an output is called equal, close or wrong."""

from __future__ import annotations

import numpy as np
import pytest

from harness.export.program import TensorSpec
from harness.judge.evidence import compare

FLOATS = TensorSpec("output 0", "float32", (1, 2, 2, 2), (0, 2, 3, 1), scale=0.5, zero_point=3)
BYTES = TensorSpec("output 0", "int8", (4,), (0,))


def raw(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


def test_equal_bytes_are_equal() -> None:
    diff = compare(FLOATS, 0, raw(*range(8)), raw(*range(8)))
    assert diff.exact
    assert diff.worst_lsb == 0.0
    assert diff.within(0)


def test_one_lsb_is_found_at_its_logical_index() -> None:
    """Memory is NHWC; the index that is reported must be NCHW."""
    got = raw(0, 1, 2, 3, 4, 5.5, 6, 7)  # memory element 5 = h 1, w 0, c 1
    diff = compare(FLOATS, 2, got, raw(*range(8)))
    assert not diff.exact
    assert diff.worst_index == (0, 1, 1, 0)
    assert diff.worst_lsb == pytest.approx(1.0)
    assert diff.differing == 1
    assert not diff.within(0)
    assert diff.within(1)
    assert "output 0[0, 1, 1, 0] of input set 2 is off by 1 LSB" in diff.describe()
    assert "got 5.5, expected 5" in diff.describe()


def test_two_lsb_are_not_within_one() -> None:
    diff = compare(FLOATS, 0, raw(0, 1, 2, 3, 4, 6, 6, 7), raw(*range(8)))
    assert not diff.within(1)
    assert diff.within(2)


def test_integers_have_a_step_of_one() -> None:
    diff = compare(BYTES, 0, bytes([1, 2, 3, 250]), bytes([1, 2, 3, 4]))
    assert diff.worst_lsb == 10  # -6 against 4: signed, not modulo 256


def test_nan_on_one_side_is_infinitely_wrong() -> None:
    diff = compare(FLOATS, 0, raw(*range(7), np.nan), raw(*range(8)))
    assert diff.worst_abs == np.inf
    assert not diff.within(1e9)


def test_nan_on_both_sides_with_other_payload_and_signed_zero_are_equal() -> None:
    other_nan = np.array([0x7FC00001], np.uint32).tobytes()
    got = raw(-0.0, *range(1, 7)) + other_nan
    assert compare(FLOATS, 0, got, raw(0.0, *range(1, 7), np.nan)).exact


def test_without_scale_only_exact_is_within() -> None:
    spec = TensorSpec("output 0", "float32", (1,), (0,))
    diff = compare(spec, 0, raw(1.0), raw(1.0000001))
    assert diff.worst_lsb is None
    assert not diff.within(1000)


@pytest.mark.parametrize("expected", [31, 32])
def test_wrong_number_of_bytes_is_refused(expected: int) -> None:
    """Also when what is expected is as short, and so equal."""
    with pytest.raises(ValueError, match="expected 32 bytes, got 31"):
        compare(FLOATS, 0, b"\0" * 31, b"\0" * expected)
