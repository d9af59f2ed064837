"""Which cases of the matrix a run of all tests has."""

from __future__ import annotations

import pytest

from harness.config.case import Case
from harness.plugin.options import option_value
from harness.run.gate import is_allowed

# A board that follows another one has no references (hil_allow_new), but programs of its own, which
# differ from the other's in the sizes of scratch. One network shows that they fit; what the kernels
# compute for each core is in tests/kernels. The host's programs are another board's.
NETWORK = "ds_cnn"
_EVERY_CASE = ("test_model", "test_program")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All models are run on a board that follows another one where -m or -k chooses."""
    if config.option.markexpr or config.option.keyword:
        return
    allowed = option_value(config, "allow-new") or []
    left_out = {item for item in items if _is_left_out(item, allowed)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_left_out(item: pytest.Item, allowed: list[str]) -> bool:
    if not isinstance(item, pytest.Function) or item.originalname not in _EVERY_CASE:
        return False
    case = item.callspec.params.get("hil_case")
    return (
        isinstance(case, Case)
        and case.model != NETWORK
        and not case.target.startswith("host")
        and is_allowed(case, allowed)
    )
