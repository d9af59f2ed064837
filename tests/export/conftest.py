"""One program cache for the whole session, so that each model is exported once.

Workers of pytest-xdist share it: whoever comes first exports, the others wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.export import ExportRequest, export
from harness.models import ModelSource, find_model
from harness.program import Program


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "HIL_HOME" in os.environ:
        return Path(os.environ["HIL_HOME"])
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "hil"


@pytest.fixture(autouse=True, scope="session")
def _home(shared_home: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(shared_home))
        yield


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
