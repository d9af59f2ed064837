"""Cases with different results though nothing that they depend on differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harness.core.verdict import Verdict
from harness.nightly.history.model import Row


@dataclass(frozen=True)
class Flaky:
    """``rows``: all its runs with the same program, firmware, toolchain, simulator, target and
    reference, the oldest first."""

    rows: tuple[Row, ...]

    @property
    def case(self) -> str:
        return self.rows[0].case

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(str(row.verdict) for row in self.rows)

    @property
    def outputs(self) -> int:
        """How many different ones."""
        return len({row.output for row in self.rows if row.output and (row.good or row.bad)})

    @property
    def rescued(self) -> int:
        """How often a second try was not INFRA."""
        return sum(row.attempt > 1 and row.verdict is not Verdict.INFRA for row in self.rows)

    @property
    def differs(self) -> bool:
        """INFRA in both tries says nothing of a case."""
        ends = {row.verdict for row in self.rows if row.good or row.bad}
        return len(ends) > 1 or self.outputs > 1 or self.rescued > 0

    @property
    def score(self) -> float:
        """The part of the runs that ended as the fewest did."""
        return min(self.verdicts.values()) / len(self.rows)


def flaky(rows: Iterable[Row]) -> list[Flaky]:
    """The worst first. Unknown firmware (a build that failed) is never the same."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.identity.firmware and row.identity.program:
            groups.setdefault((row.case, *row.identity.of_product), []).append(row)
    cases = (Flaky(tuple(group)) for group in groups.values())
    return sorted((c for c in cases if c.differs), key=lambda case: (-case.score, case.case))
