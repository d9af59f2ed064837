"""A network that got slower on the NPU says where and why, by Vela's estimate."""

from __future__ import annotations

from dataclasses import replace

from harness.export.estimates import Estimate, NpuCost, NpuOperator
from harness.judge.cost import npu_growth_sentences

CONV = NpuOperator("Conv2D", "a", "body.0", 1000, 10)
POOL = NpuOperator("AvgPool", "b", "", 300, 0)


def cost(*operators: NpuOperator, vela: str = "5.1.0", mode: str = "Shared_Sram") -> NpuCost:
    total = float(sum(each.cycles for each in operators))
    estimate = Estimate("ethos-u55-128", "c", mode, {"cycles_total": total}, operators)
    return NpuCost({"ethos-u-vela": vela, "executorch": "1.5.1"}, (estimate,))


def test_the_layer_that_grew_is_named_first() -> None:
    now = cost(replace(CONV, cycles=8000), replace(POOL, cycles=310))
    assert npu_growth_sentences(cost(CONV, POOL), now) == [
        "Conv2D of layer body.0: 1,000 to 8,000 cycles",
        "AvgPool: 300 to 310 cycles",
        "the same compilers with the same options, so the model changed",
    ]


def test_what_changed_is_reported() -> None:
    now = cost(replace(CONV, cycles=8000), POOL, vela="5.2.0", mode="Sram_Only")
    *_, changed = npu_growth_sentences(cost(CONV, POOL), now)
    assert changed == (
        "what changed: ethos-u-vela 5.1.0 to 5.2.0, memory_mode Shared_Sram to Sram_Only"
    )
    two = replace(now, estimates=now.estimates * 2)
    assert "1 delegates to 2" in npu_growth_sentences(cost(CONV, POOL), two)[-1]


def test_many_are_added_up() -> None:
    layers = [replace(CONV, layer=f"l{n}") for n in range(9)]
    slower = [replace(each, cycles=1010) for each in layers]
    told = npu_growth_sentences(cost(*layers), cost(*slower))
    assert told[5] == "4 more operators: 40 cycles together"


def test_a_new_operator_was_nothing_before() -> None:
    assert npu_growth_sentences(cost(CONV), cost(CONV, POOL))[0] == "AvgPool: 0 to 300 cycles"


def test_where_nothing_was_accepted_nothing_is_reported() -> None:
    assert npu_growth_sentences(None, cost(CONV)) == []
    assert npu_growth_sentences(cost(CONV), None) == []
