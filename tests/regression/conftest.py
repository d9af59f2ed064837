"""Which cases of the matrix a run of all tests has."""

from __future__ import annotations

import re

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from tests.thorough import SLOW_FOR_AN_NPU, is_named, is_thorough

NETWORK = "ds_cnn"
# A CPU with Helium and an NPU. What the other NPUs compute, tests/npu and tests/direct_drive hold
# against the TOSA reference model, operator by operator.
EVERY_NETWORK = ("corstone-300-m55", "corstone-320-u85-256")
# That the runner works on every other board, one network shows, but for those that differ from
# another one in little: of an instruction set that it has (tests/kernels has what is computed with
# each), or in the NPU's MAC count or memory mode (tests/npu has these).
_SAME_INSTRUCTIONS = ("mps2-m3", "mps2-m4", "mps2-m7")  # as mps2-m0plus, and as mps2-m33
_ZEPHYR = "zephyr"  # run where there is a workspace
_OF_CASES = ("test_model", "test_program", "test_runner")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every case is run by a thorough run, and where -m or -k chooses; the full tier only where -m
    says so."""
    chosen = config.option.markexpr
    full = {item for item in items if item.get_closest_marker("full")}
    left_out = set() if re.search(r"\bfull\b", chosen) else full
    if not (is_thorough() or is_named(config)):
        left_out |= {item for item in items if _is_left_out(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or item.originalname not in _OF_CASES:
        return False
    case = item.callspec.params.get("hil_case")
    if not isinstance(case, Case) or case.target.startswith(_ZEPHYR):
        return False
    if case.target in EVERY_NETWORK:
        return case.model == SLOW_FOR_AN_NPU and load_target(case.target).npu is not None
    if case.model != NETWORK or "@" in case.target or case.target in _SAME_INSTRUCTIONS:
        return True
    npu = load_target(case.target).npu
    return npu is not None and not npu.has_default_macs
