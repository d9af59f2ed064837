"""Which tests a shard and a sample take."""

from __future__ import annotations

from harness.suites.results import Selection

TESTS = [f"test_{letter}" for letter in "hgfedcba"]


def test_shards_divide_the_tests_and_keep_their_order() -> None:
    shards = [Selection(shard=(index, 3)).choose(TESTS) for index in (1, 2, 3)]
    assert sorted(test for shard in shards for test in shard) == sorted(TESTS)
    assert shards[0] == ["test_h", "test_e", "test_b"]


def test_a_sample_is_drawn_from_its_shard_and_depends_on_the_seed() -> None:
    drawn = {tuple(Selection(shard=(1, 2), sample=2, seed=n).choose(TESTS)) for n in range(20)}
    assert len(drawn) > 1
    assert all(len(tests) == 2 and set(tests) <= set(TESTS[::2]) for tests in drawn)
    assert Selection(sample=3, seed=5).choose(TESTS) == Selection(sample=3, seed=5).choose(TESTS)


def test_a_sample_does_not_depend_on_the_order_of_collection() -> None:
    sample = Selection(sample=3, seed=5)
    assert set(sample.choose(TESTS)) == set(sample.choose(TESTS[::-1]))


def test_a_large_sample_is_everything() -> None:
    assert Selection(sample=99).choose(TESTS) == TESTS
    assert Selection().everything
    assert not Selection(sample=99).everything
