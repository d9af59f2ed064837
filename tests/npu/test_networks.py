"""Random graphs of several operators: right, or wrong in a way that has a name.

What one operator alone does not show: what Vela makes of operators that stand together. CI runs a
few dozen on each product; ``HIL_NPU_NETWORKS`` asks for another number (2000 for a full run).
"""

from __future__ import annotations

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from tests.npu import tosa_networks
from tests.thorough import amount

COUNT = amount(40, 500)


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_what_is_wrong_is_known(target: str) -> None:
    wrong = []
    for number in range(COUNT):
        found = tosa_networks.smallest(tosa_networks.make(number, target))
        if found is not None:
            smallest, defect = found[0], tosa_networks.named(*found)
            wrong.append(defect)
            words = f"python -m tests.npu.tosa_networks {target} {number} {number + 1}"
            assert defect, f"{words}: {smallest.trouble} of {smallest.operators}"
    assert wrong, "graphs like these are known to be compiled wrongly; none was drawn"
