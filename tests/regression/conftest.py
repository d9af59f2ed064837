"""Which cases of the matrix a run of all tests has."""

from __future__ import annotations

import re

import pytest

from harness.config.case import Case
from harness.config.loading import load_targets
from harness.plugin.options import option_value
from harness.run.gate import is_allowed

# A board that follows another one has no references (hil_allow_new), but programs of its own, which
# differ from the other's in the sizes of scratch. One network shows that they fit; what the kernels
# compute for each core is in tests/kernels. The host's programs are another board's.
NETWORK = "ds_cnn"
# Boards that differ in the NPU's MAC count have one firmware and programs that Vela scheduled
# otherwise. What the NPU computes with each count is in tests/npu/test_npu_models; that a board is
# right with another count than its own, the largest shows.
# The host runs direct drive's networks for the Linux board, which takes longer, but for these two:
# no operator of theirs is theirs alone, and each takes Vela a long time.
_HOST, _OTHERS = "host-u85-256", ("mobilenet_v1_025", "deep_autoencoder")
_EVERY_CASE = ("test_model", "test_program")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every case is run where -m, -k or --hil-npu-cases=all chooses; the full tier only where -m
    says so."""
    chosen = config.option.markexpr
    full = {item for item in items if item.get_closest_marker("full")}
    left_out = set() if re.search(r"\bfull\b", chosen) else full
    if not (option_value(config, "npu-cases") == "all" or chosen or config.option.keyword):
        allowed = option_value(config, "allow-new") or []
        unwanted = _smaller_counts()
        left_out |= {item for item in items if _is_left_out(item, allowed, unwanted)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _smaller_counts() -> set[str]:
    """The targets with a MAC count that is not the board's own, but the largest of each board."""
    boards: dict[str, dict[int, str]] = {}
    for target in load_targets():
        if target.npu is not None and not target.npu.has_default_macs:
            board = target.name.rpartition("-")[0]
            boards.setdefault(board, {})[target.npu.macs] = target.name
    return {counts[macs] for counts in boards.values() for macs in sorted(counts)[:-1]}


def _is_left_out(item: pytest.Item, allowed: list[str], unwanted: set[str]) -> bool:
    if not isinstance(item, pytest.Function) or item.originalname not in _EVERY_CASE:
        return False
    case = item.callspec.params.get("hil_case")
    if not isinstance(case, Case) or not is_allowed(case, allowed):
        return False
    if case.target.startswith("host"):
        return case.target == _HOST and case.model in _OTHERS
    return case.model != NETWORK or case.target in unwanted
