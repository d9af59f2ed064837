"""Random programs by direct drive: Vela, our backend, the driver library and a driver, the NPU's
model; with sanitizers, and equal to the TOSA reference model in every byte.
"""

from __future__ import annotations

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from tests.direct_drive import cases
from tests.thorough import amount

CASES = amount(20, 500)
_AT_A_TIME = 15


@pytest.mark.parametrize("first", range(0, CASES, _AT_A_TIME))
def test_direct_drive_equals_tosa(first: int) -> None:
    """Any number of inputs and outputs, with and without scratch, in the order that Vela likes."""
    elf = cases.runner()
    for number in range(first, min(first + _AT_A_TIME, CASES)):
        try:
            case = cases.make(number)
            print(case)
            assert cases.agrees(case, elf)
        except BaseException:
            print(f"python -m tests.direct_drive.cases {number}")
            raise


def test_what_the_cases_are() -> None:
    """20 with several inputs, 10 with several outputs, 10 without scratch; and such whose inputs
    are not in the order of their places."""
    made = [cases.make(number).read for number in range(60)]
    assert sum(len(blob.inputs) > 1 for blob in made) >= 20
    assert sum(len(blob.outputs) > 1 for blob in made) >= 10
    assert sum(blob.scratch_size == 0 for blob in made) >= 10
    places = [[tensor.offset for tensor in blob.inputs] for blob in made]
    assert sum(offsets != sorted(offsets) for offsets in places) >= 10
