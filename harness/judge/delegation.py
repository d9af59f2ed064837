"""Says what an NPU leaves to the CPU and what that costs; holds it to ``budgets: {delegated: …}``.

Pure. The reasons are those of ``harness.export.child.partition``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.config.budgets import Budgets
from harness.config.known import way_round
from harness.core.safe_text import counted
from harness.export.program import CpuOperator, Delegation
from harness.log.events import OpTicks

_MOST_NAMED = 8


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
        named = "; ".join(self.operators[:_MOST_NAMED])
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
