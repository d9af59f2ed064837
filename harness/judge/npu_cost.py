"""Which operators of an NPU got slower by Vela's estimate, and what changed with it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.core.safe_text import listed
from harness.export.estimates import NpuCost

FIGURE = "npu_cycles_estimated"
_MOST_NAMED = 5


def reasons(before: NpuCost | None, now: NpuCost | None) -> list[str]:
    """Return the operators that grew most, by layer, then what else is another.

    Empty where one of the two is not known."""
    if before is None or now is None:
        return []
    old, new = _cycles(before), _cycles(now)
    grown = [name for name in {**new, **old} if new[name] > old[name]]
    grown.sort(key=lambda name: old[name] - new[name])
    told = [f"{name}: {old[name]:,} to {new[name]:,} cycles" for name in grown[:_MOST_NAMED]]
    if rest := grown[_MOST_NAMED:]:
        more = sum(new[name] - old[name] for name in rest)
        told.append(f"{len(rest)} more operators: {more:,} cycles together")
    changed = listed([*_changes(before, now)], _MOST_NAMED)
    same = "the same compilers with the same options, so the model changed"
    return [*told, f"what changed: {changed}" if changed else same]


def _cycles(cost: NpuCost) -> Counter[str]:
    """Cycles by operator and layer: Vela may make several operations of one operator."""
    count: Counter[str] = Counter()
    for operator in cost.operators:
        count[operator.title] += operator.cycles
    return count


def _changes(before: NpuCost, now: NpuCost) -> Iterator[str]:
    for name in sorted({*before.versions, *now.versions}):
        old, new = before.versions.get(name, "none"), now.versions.get(name, "none")
        if old != new:
            yield f"{name} {old} to {new}"
    if len(before.estimates) != len(now.estimates):
        yield f"{len(before.estimates)} delegates to {len(now.estimates)}"
    for option in ("npu", "system_config", "memory_mode"):
        ways = [sorted({getattr(e, option) for e in cost.estimates}) for cost in (before, now)]
        if ways[0] != ways[1]:
            yield f"{option} {', '.join(ways[0])} to {', '.join(ways[1])}"
