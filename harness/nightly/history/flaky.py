"""Cases with different results though nothing that they depend on differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.core.verdict import Verdict
from harness.nightly.history.model import Row


@dataclass(frozen=True)
class Flaky:
    """A case with different results for the same program, firmware, toolchain, simulator, target
    and reference. ``rows``: the oldest of each verdict; ``runs``: how many in all; ``outputs``:
    how many different ones; ``rescued``: how often a second try was not INFRA."""

    case: str
    runs: int
    verdicts: dict[str, int]
    outputs: int
    rescued: int
    rows: tuple[Row, ...]


def flaky(rows: Iterable[Row]) -> list[Flaky]:
    """The worst first. Unknown firmware (a build that failed) is never the same."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row.case, *row.identity.of_product)
        if row.identity.firmware and row.identity.program:
            groups.setdefault(key, []).append(row)
    cases = [_flaky(group) for group in groups.values()]
    return sorted(
        (case for case in cases if case.outputs > 1 or case.rescued or _disagree(case.rows)),
        key=lambda case: (-min(case.verdicts.values()) / case.runs, case.case),
    )


def _disagree(rows: Sequence[Row]) -> bool:
    """INFRA in both tries says nothing of the case."""
    return sum(row.good or row.bad for row in rows) > 1


def _flaky(group: Sequence[Row]) -> Flaky:
    oldest: dict[str, Row] = {}
    for row in group:
        oldest.setdefault(row.verdict, row)
    return Flaky(
        case=group[0].case,
        runs=len(group),
        verdicts=dict(Counter(str(row.verdict) for row in group)),
        outputs=len({row.output for row in group if row.output and (row.good or row.bad)}),
        rescued=sum(row.attempt > 1 and row.verdict is not Verdict.INFRA for row in group),
        rows=tuple(oldest.values()),
    )
