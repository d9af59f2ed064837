"""What each layer of a model costs: instructions of the CPU, and Vela's estimate of the NPU. Pure.

The two are never added: one is counted, the other is an estimate, and they are not of one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.export.estimates import NpuCost
from harness.export.program import Delegation
from harness.log.events import OpTicks

_DRIVER = "EthosUBackend"


@dataclass(frozen=True)
class ProfileRow:
    """What one layer or operator costs.

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
