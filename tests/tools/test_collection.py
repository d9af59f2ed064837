"""Protects the start of every run of the tests."""

from __future__ import annotations

import pytest

from tests.conftest import COLLECTED_WITH


def test_no_file_imports_torch_when_it_is_collected(request: pytest.FixtureRequest) -> None:
    """Each worker, and every run of a single test, would wait 5 s for it: see tests/late.py."""
    assert not {"torch", "executorch"} & request.config.stash[COLLECTED_WITH]
