"""Every recorded case gives the TOSA reference model's bytes, in strict mode."""

from __future__ import annotations

import pytest

from harness.npu.model import Network
from tests.npu.assembling import run
from tests.npu.recorded import Recorded, recorded_cases


@pytest.mark.parametrize("npu_case", recorded_cases(), ids=lambda c: c.name)
def test_bit_exact(npu_case: Recorded) -> None:
    outputs, stats = run(npu_case.blob, npu_case.inputs)
    assert tuple(outputs) == npu_case.expected
    assert sum(stats.operations.values()) > 0


@pytest.mark.parametrize("npu_case", recorded_cases()[:12], ids=lambda c: c.name)
def test_second_run_is_the_same_and_lax_mode_too(npu_case: Recorded) -> None:
    """Decoded weights are kept: what is kept must not depend on the first run."""
    network = Network(npu_case.blob)
    first, _ = network.run(npu_case.inputs)
    assert network.run(npu_case.inputs)[0] == first
    assert network.run(npu_case.inputs, strict=False)[0] == first


def test_stats_count_moved_bytes() -> None:
    """What a memory mode changes: bytes per region and kind."""
    case = next(c for c in recorded_cases() if c.name.startswith("pointwise"))
    _, stats = run(case.blob, case.inputs)
    assert stats.macs > 0
    assert stats.moved["weights"]["WEIGHT"] > 0
    assert stats.moved["scratch"]["OFM"] > 0
