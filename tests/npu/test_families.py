"""Random operators of every family: exported, compiled by Vela, run, equal to TOSA.

An ordinary run has two of them: an export takes seconds. ``test_property`` has all families
and many cases of each. A failure prints the family and seed that reproduce it.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs torch, ExecuTorch and Vela")

from tests.npu import compiling, families
from tests.npu.assembling import run
from tests.thorough import amount

CASES = amount(2, 150)
FIRST_SEED = 100
TARGETS = ("ethos-u55-128", "ethos-u85-256", "ethos-u65-512")
FAMILIES = {**families.COMMON, **families.U85_ONLY}


def _plan() -> list[tuple[str, int, str]]:
    names = list(FAMILIES)
    plan = []
    for index in range(CASES):
        family, seed = names[index % len(names)], FIRST_SEED + index // len(names)
        target = "ethos-u85-256" if family in families.U85_ONLY else TARGETS[index % len(TARGETS)]
        plan.append((family, seed, target))
    return plan


@pytest.mark.parametrize(("family", "seed", "target"), _plan())
def test_npu_equals_tosa(family: str, seed: int, target: str) -> None:
    print(f"family {family}, seed {seed}, target {target}")
    generator = np.random.default_rng([seed, list(FAMILIES).index(family)])
    case = FAMILIES[family](generator)
    delegates = compiling.compile_case(case, target)
    if not delegates:
        pytest.skip("nothing is delegated")
    for delegate in delegates:
        inputs = compiling.random_inputs(delegate.tosa, generator)
        if family == "indexing":
            inputs = [v % case.inputs[0].shape[0] if v.dtype == np.int32 else v for v in inputs]
        expected = [v.tobytes() for v in compiling.reference(delegate.tosa, inputs)]
        assert run(delegate.blob, [v.tobytes() for v in inputs])[0] == expected
