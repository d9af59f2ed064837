"""Which tests of a suite a run takes: pytest's ``-k``, then a shard, then a random sample."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """``keyword`` is pytest's ``-k``. ``shard`` is (i, n): the i-th of n parts, counted from 1.
    ``sample`` is a number of tests, drawn with ``seed``. None: no restriction."""

    keyword: str | None = None
    shard: tuple[int, int] | None = None
    sample: int | None = None
    seed: int = 0

    @property
    def everything(self) -> bool:
        return self.keyword is None and self.shard is None and self.sample is None

    def choose(self, ids: Sequence[str]) -> list[str]:
        """Shard and sample of the tests that the keyword matched; both keep their order."""
        index, count = self.shard or (1, 1)
        chosen = [test for number, test in enumerate(ids) if number % count == index - 1]
        if self.sample is None:
            return chosen
        names = sorted(chosen)
        drawn = set(random.Random(self.seed).sample(names, min(self.sample, len(names))))
        return [test for test in chosen if test in drawn]
