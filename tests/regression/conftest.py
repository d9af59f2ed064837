"""Which cases of the matrix a run of all tests has."""

from __future__ import annotations

import re

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.plugin.options import option_value
from harness.run.gate import is_allowed
from tests.thorough import is_named, is_thorough

# A board that follows another one has no references (hil_allow_new), but programs of its own, which
# differ from the other's in the sizes of scratch. One network shows that they fit, on one board of
# each instruction set; what the kernels compute for each core is in tests/kernels.
NETWORK = "ds_cnn"
_SAME_INSTRUCTIONS = ("mps2-m3", "mps2-m4", "mps2-m7")  # as mps2-m0plus, and as mps2-m33
# Boards that differ in the NPU's MAC count have one firmware and programs that Vela scheduled
# otherwise. What the NPU computes with each count, and in each memory mode, is in
# tests/npu/test_npu_models; that a board is right with another count, one shows, and in another
# mode one of each placement.
_OTHER_COUNTS = ("corstone-300-u55-256",)
_OTHER_MODES = (
    "corstone-300-u55-128@Sram_Only",
    "corstone-320-u85-256@Shared_Sram",
    "corstone-320-u85-256@Dedicated_Sram",
)
# The host runs the programs of another board, and direct drive's for the Linux board, which takes
# longer, but for these: no operator of theirs is theirs alone, and each takes a long time.
_OTHERS = ("mobilenet_v1_025", "deep_autoencoder", "resnet8")
_EVERY_CASE = ("test_model", "test_program")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every case is run by a thorough run, and where -m or -k chooses; the full tier only where -m
    says so."""
    chosen = config.option.markexpr
    full = {item for item in items if item.get_closest_marker("full")}
    left_out = set() if re.search(r"\bfull\b", chosen) else full
    if not (is_thorough() or is_named(config)):
        allowed = option_value(config, "allow-new") or []
        left_out |= {item for item in items if _is_left_out(item, allowed)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item, allowed: list[str]) -> bool:
    if not isinstance(item, pytest.Function) or item.originalname not in _EVERY_CASE:
        return False
    case = item.callspec.params.get("hil_case")
    if not isinstance(case, Case) or not is_allowed(case, allowed):
        return False
    npu = load_target(case.target).npu
    if case.target.startswith("host"):
        return case.model in _OTHERS or "@" in case.target
    if "@" in case.target:
        return case.target not in _OTHER_MODES or case.model != NETWORK
    if npu is not None and not npu.has_default_macs:
        return case.target not in _OTHER_COUNTS or case.model != NETWORK
    return case.target in _SAME_INSTRUCTIONS or case.model != NETWORK
