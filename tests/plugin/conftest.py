"""Sessions of pytest inside of a test."""

from __future__ import annotations

import numpy  # noqa: F401  # a session inside forgets what it imports, and numpy loads once only
import pytest

from tests.conftest import WITHOUT_OTHERS_PLUGINS


@pytest.fixture(autouse=True)
def _only_our_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """``pytester`` removes the variable that tests/conftest.py sets."""
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS_PLUGINS)
    monkeypatch.setenv("CI", "")  # in which what was never accepted fails
