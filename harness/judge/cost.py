"""Computes the cost of a program, and of what an NPU leaves to the CPU. Pure.

By layer: instructions of the CPU, and Vela's estimate of the NPU. The two are never added: one is
counted, the other is an estimate, and they are not of one clock. ``budgets: {delegated: …}`` limits
what the NPU leaves; the reasons are those of ``harness.export.child.partition``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.config.budgets import Budgets
from harness.config.known import way_round
from harness.core.safe_text import counted, listed
from harness.export.estimates import NpuCost
from harness.export.program import CpuOperator, Delegation
from harness.log.events import OpTicks

NPU_FIGURE = "npu_cycles_estimated"
_MOST_NAMED = 5
_MOST_LEFT = 8  # operators on the CPU
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


def npu_growth_sentences(before: NpuCost | None, now: NpuCost | None) -> list[str]:
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


@dataclass(frozen=True)
class OnCpu:
    """An operator that an NPU left to the CPU.

    ``share``: of the CPU's instructions in the first input set, 0 to 1, and ``converted``: with
    quantising and dequantising for it; None where nobody counted."""

    operator: CpuOperator
    share: float | None
    converted: float | None

    def describe(self) -> str:
        parts = [self.operator.why or "ExecuTorch gives no reason"]
        if self.share is not None and self.converted is not None:
            shares = f"{100 * self.share:.0f} % of the CPU's instructions"
            if self.converted > self.share:
                shares += f", {100 * self.converted:.0f} % with its conversions"
            parts.insert(0, shares)
        helps = f" (what helps: {way})" if (way := way_round(self.operator.why)) else ""
        return f"{self.operator}: {'; '.join(parts)}{helps}"

    def summary(self) -> dict[str, Any]:
        way, shares = way_round(self.operator.why), {"share": self.share}
        shares["share_with_conversions"] = self.converted
        return {**asdict(self.operator), "instead": way, **shares}


def on_cpu(delegation: Delegation, ticks: Iterable[OpTicks]) -> list[OnCpu]:
    """Operators on the CPU, those with most ticks first. ``ticks``: of one input set."""
    ticks = tuple(ticks)
    found = [
        OnCpu(
            each,
            _share(ticks, each.instructions),
            _share(ticks, (*each.instructions, *each.conversions)),
        )
        for each in delegation.cpu
    ]
    return sorted(found, key=lambda one: -(one.converted or 0))


def _share(ticks: Sequence[OpTicks], numbers: Iterable[int]) -> float | None:
    chosen = {*numbers}
    total = sum(each.ticks for each in ticks)
    own = sum(each.ticks for each in ticks if each.instruction in chosen)
    return round(own / total, 4) if total else None


def delegation_note(delegation: Delegation, ticks: Iterable[OpTicks]) -> str:
    """ "1 of 21 operators on the CPU: 66 % of its instructions, 90 % with conversions", or ""."""
    if not delegation.cpu:
        return ""
    text = f"{len(delegation.cpu)} of {counted(delegation.total, 'operator')} on the CPU"
    own = {n for each in delegation.cpu for n in each.instructions}
    both = own.union(*(each.conversions for each in delegation.cpu))
    ticks = tuple(ticks)
    share, converted = _share(ticks, own), _share(ticks, both)
    if share is not None and converted is not None:
        text += (
            f": {100 * share:.0f} % of its instructions, {100 * converted:.0f} % with conversions"
        )
    return f"{text}; `hil why` says why"


@dataclass(frozen=True)
class Undelegated:
    """Too few operators are on the NPU: fewer than ``least`` of ``total``."""

    npu: int
    least: int
    total: int
    operators: tuple[str, ...]

    def describe(self) -> str:
        named = "; ".join(self.operators[:_MOST_LEFT])
        return (
            f"the NPU has {self.npu} of {counted(self.total, 'operator')}; the budget `delegated` "
            f"wants {self.least}; on the CPU: {named or 'nothing'}"
        )


def check_delegation(delegation: Delegation | None, budgets: Budgets) -> Undelegated | None:
    if delegation is None or budgets.delegated is None:
        return None
    total = delegation.total
    least = total if budgets.delegated == "all" else budgets.delegated
    if delegation.npu >= least:
        return None
    return Undelegated(delegation.npu, least, total, tuple(o.reason for o in delegation.cpu))
