"""Which tests of a list a selection takes, for the suite's process and for ours alike."""

from __future__ import annotations

import random
from collections.abc import Sequence


def choose(ids: Sequence[str], shard: tuple[int, int], sample: int, seed: int) -> list[str]:
    """The shard ``i/n`` of ``ids``, then ``sample`` of it by chance, all of it for 0."""
    index, count = shard
    chosen = [one for number, one in enumerate(ids) if number % count == index - 1]
    if not sample:
        return chosen
    names = sorted(chosen)
    kept = set(random.Random(seed).sample(names, min(sample, len(names))))
    return [one for one in chosen if one in kept]


def pair_of(test: str) -> str:
    """The same for two tests that prepare the same (``prepared``), and otherwise the test."""
    return test.replace("::test_implementation", "::test_dialect").replace("_ops_fvp[", "_ops[")


def longest_first(ids: Sequence[str], seconds: dict[str, float], workers: int) -> list[str]:
    """The longest first, for each of the workers: at first each gets one piece of the list, and
    those that are done early take from the ends of others. What is not known comes last; pairs
    stay together, in the order they have."""
    groups: dict[str, list[str]] = {}
    for one in ids:
        groups.setdefault(pair_of(one), []).append(one)
    taken = {name: sum(seconds.get(one, 0.0) for one in group) for name, group in groups.items()}
    ordered = sorted(groups, key=lambda name: -taken[name])
    pieces = [ordered[start::workers] for start in range(workers)]
    return [one for piece in pieces for name in piece for one in groups[name]]
