"""The order of a suite's tests."""

from __future__ import annotations

from harness.conformance.selecting import longest_first, pair_of

DIALECT, IMPLEMENTATION = (
    "ops/test_add.py::test_dialect_add[{}]",
    "ops/test_add.py::test_implementation_add[{}]",
)
IDS = [name.format(one) for name in (DIALECT, IMPLEMENTATION) for one in "abc"]


def test_pairs_stand_together_and_the_one_that_prepares_is_first() -> None:
    assert longest_first(IDS, {}, 1) == [
        name.format(one) for one in "abc" for name in (DIALECT, IMPLEMENTATION)
    ]


def test_the_longest_pair_is_first_for_each_worker() -> None:
    seconds = {DIALECT.format("b"): 3.0, IMPLEMENTATION.format("c"): 2.0, DIALECT.format("a"): 1.0}
    assert longest_first(IDS, seconds, 2) == [
        name.format(one) for one in "bac" for name in (DIALECT, IMPLEMENTATION)
    ]


def test_other_tests_are_alone() -> None:
    assert pair_of(DIALECT) == pair_of(IMPLEMENTATION)
    portable = "misc/test_portable_int8.py::test_shared_qspec_portable_int8_ops{}[view]"
    assert pair_of(portable.format("_fvp")) == pair_of(portable.format("")) != DIALECT
    assert longest_first(["a", "b", "c"], {"c": 1.0}, 1) == ["c", "a", "b"]
