"""What a program costs, by layer: instructions of the CPU, and Vela's estimate of the NPU. Pure.

The two are never added: one is counted, the other is an estimate, and they are not of one clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.core.safe_text import listed
from harness.export.estimates import NpuCost
from harness.export.program import Delegation
from harness.log.events import OpTicks

NPU_FIGURE = "npu_cycles_estimated"
_MOST_NAMED = 5
_DRIVER = "EthosUBackend"


@dataclass(frozen=True)
class ProfileRow:
    """The cost of one layer or operator.

    ``layer``: the path of a module, "" where none is known. ``instructions``: of the CPU, for a
    delegate those of its driver; ``cycles``: of the NPU; 0: it has none of them."""

    layer: str
    operator: str
    calls: int
    instructions: int = 0
    cycles: int = 0


def profile(
    ticks: Iterable[OpTicks],
    layers: Sequence[str],
    delegation: Delegation | None,
    cost: NpuCost | None,
) -> list[ProfileRow]:
    """Sum costs by layer and operator, what has the largest share of its column first.

    ``layers``: by instruction; what quantises for an operator on the CPU is of its layer."""
    near = {n: o.layer for o in (delegation.cpu if delegation else ()) for n in o.conversions}
    on_cpu: dict[tuple[str, str], list[int]] = {}
    driven = 0
    for each in ticks:
        number, name = each.instruction, each.operator
        layer = near.get(number) or (layers[number] if number < len(layers) else "")
        if name == _DRIVER:
            layer, driven = f"delegate {driven}", driven + 1
        on_cpu.setdefault((layer, name), []).append(each.ticks)
    on_npu: dict[tuple[str, str], list[int]] = {}
    for operator in () if cost is None else cost.operators:
        on_npu.setdefault((operator.layer, operator.operator), []).append(operator.cycles)
    rows = [ProfileRow(*key, len(values), sum(values)) for key, values in on_cpu.items()]
    rows += [ProfileRow(*key, len(v), cycles=sum(v)) for key, v in on_npu.items()]
    cpu, npu = sum(r.instructions for r in rows) or 1, sum(r.cycles for r in rows) or 1
    return sorted(rows, key=lambda row: -max(row.instructions / cpu, row.cycles / npu))


def npu_growth(before: NpuCost | None, now: NpuCost | None) -> list[str]:
    """Return what grew most, by layer, then other changes; empty if one is not known."""
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
