"""The project's own program cache, so that the whole suite exports each model once.

Workers of pytest-xdist share it: whoever comes first exports, the others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.case.models import ModelSource, find_model
from harness.export.batch import export
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.system.paths import state_dir


@pytest.fixture(scope="session")
def shared_home() -> Path:
    return state_dir()


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    return tmp_path / "hil"


@pytest.fixture
def exported() -> Callable[..., Program]:
    """Model, and compile target if it is not the Cortex-M55."""

    def get(model: str | ModelSource, target: str = "cortex-m55", mode: str = "") -> Program:
        source = find_model(model) if isinstance(model, str) else model
        return export([ExportRequest(source, target, memory_mode=mode)])[0].unwrap()

    return get


@pytest.fixture
def user_model(tmp_path: Path) -> Callable[[str], ModelSource]:
    """A user's model file with the given text."""

    def write(text: str, name: str = "mine.py") -> ModelSource:
        file = tmp_path / name
        file.write_text(text)
        return find_model(str(file))

    return write
