"""Fixtures of the whole suite."""

from __future__ import annotations

import pytest

from harness.system.paths import state_dir


@pytest.fixture(scope="session")
def shared_hil_home() -> str:
    """The state directory of the session itself, so that inner runs export and build nothing."""
    return str(state_dir())
