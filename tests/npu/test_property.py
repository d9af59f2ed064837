"""Random TOSA operators, family by family: compiled by Vela, run, equal to the reference model.

The graphs are written directly, as ExecuTorch lowers them, so that a case costs 50 ms and not a
second; ``test_families`` has the same families by way of an export.
"""

from __future__ import annotations

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from tests.npu import tosa_cases
from tests.thorough import amount

CASES = amount(500, 10_000)
FAMILIES = sorted(tosa_cases.FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_npu_equals_tosa(family: str) -> None:
    """Shape, type, stride, padding, dilation, scales and zero points at random, all NPU sizes."""
    for number in range(-(-CASES // len(FAMILIES))):
        case = tosa_cases.make(family, number)
        try:
            assert tosa_cases.agrees(case)
        except BaseException:
            print(f"python -m tests.npu.tosa_cases {family} {number}")
            print(case)
            raise


def test_the_same_number_gives_the_same_case() -> None:
    """A failure can be run again by its number."""
    first, second = (tosa_cases.make("convolution", 3) for _ in range(2))
    assert first.tosa == second.tosa
    assert all((a == b).all() for a, b in zip(first.inputs, second.inputs, strict=True))


def test_a_fault_of_vela_is_still_there() -> None:
    """A padded convolution with dilation 3, behind a SLICE: ``docs/findings.md``.

    When this fails, Vela was mended, and the property tests may draw such convolutions too.
    """
    assert not tosa_cases.agrees(tosa_cases.make("sliced_dilated_by_three", 0))
