"""What ExecuTorch's own backend for Linux does with programs that ours runs exactly: the faults of
docs/findings.md are still there. Only where ``$EXECUTORCH_ROOT`` is a checkout that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from tests.direct_drive.cases import run
from tests.direct_drive.executorch import build, checkout, chosen, told

ROOT = checkout()


@pytest.mark.skipif(ROOT is None, reason="$EXECUTORCH_ROOT names no checkout with the backend")
def test_findings_in_executorch(tmp_path: Path) -> None:
    """When this fails, ExecuTorch was mended, and the heading in docs/findings.md should say so."""
    assert ROOT is not None
    program, found = build(ROOT, tmp_path), {}
    for number, (name, case) in enumerate(chosen()):
        (tmp_path / str(number)).mkdir()
        found[name] = told(case, run(case, program, tmp_path / str(number), by_runner=False))
    assert found.pop("one input, which fits into scratch") == "equal"
    assert found.pop("several inputs in another order than their places") == "DIFFERENT"
    assert found.pop("scratch 0").startswith("heap-buffer-overflow in arm_ethos_io_memcpy")
    assert not found
