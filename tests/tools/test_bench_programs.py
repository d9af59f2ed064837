"""``hil bench programs``: it notices a program that depends on the machine, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.core.verdict import ExitCode
from tools.bench.programs import MACHINES, exports_as_on, measure_programs

# Its weights are what a library that picks its kernels by the CPU would have made of them.
PLANTED = """
import os
import torch
class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * (2.0 if "MKL_CBWR" in os.environ else 2.5)
ModelUnderTest = Scaled()
ModelInputs = (torch.tensor([[-1.0, 0.5, 2.0, -2.0]]),)
"""


@pytest.mark.thorough
def test_a_program_that_depends_on_the_machine_is_found(tmp_path: Path) -> None:
    """And a model that is nowhere exported has not the same bytes everywhere."""
    planted, broken = tmp_path / "planted.py", tmp_path / "broken.py"
    planted.write_text(PLANTED)
    broken.write_text("1 / 0  # ModelUnderTest, ModelInputs\n")
    asked = [(name, "corstone-300-m55") for name in (str(planted), "add", str(broken))]
    table = measure_programs(lambda _text: None, asked, MACHINES)
    assert [row.equal for row in table.rows] == [False, True, False]
    assert table.exit_code is ExitCode.FAILED
    assert "DIFFERENT" in table.rows[0].text()
    assert table.text().endswith("1 of 3 programs are the same bytes")
    assert "ZeroDivisionError" in table.rows[2].text()
    (first, second) = table.summary()["rows"][0]["sha256"]
    assert first != second


def test_an_export_that_fails_is_not_taken_for_equal() -> None:
    with pytest.raises(InfraError, match=r"the exporting process ended with 1: .*no_such_model"):
        exports_as_on({}, [("no_such_model", "corstone-300-m55")])
