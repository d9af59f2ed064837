"""The project's own program cache, so that the whole suite exports each model once.

Workers of pytest-xdist share it: whoever comes first exports, the others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.models import ModelSource, find_model
from harness.core.errors import HarnessError
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.system.paths import state_dir
from tools.clone import project_root


@pytest.fixture(scope="session")
def shared_home() -> Path:
    return state_dir()


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    return tmp_path / "hil"


@pytest.fixture(scope="session")
def exported(hil_export_process: ExportProcess) -> Callable[..., Program]:
    """Model, and compile target if it is not the Cortex-M55."""

    def get(model: str | ModelSource, target: str = "cortex-m55", mode: str = "") -> Program:
        source = find_model(model) if isinstance(model, str) else model
        request = ExportRequest(source, target, memory_mode=mode)
        return export([request], process=hil_export_process)[0].unwrap()

    return get


@pytest.fixture
def failure(hil_export_process: ExportProcess) -> Callable[..., HarnessError]:
    """``failure(model, target)``: why a model is not exported."""

    def get(source: ModelSource, target: str = "cortex-m55") -> HarnessError:
        error = export([ExportRequest(source, target)], process=hil_export_process)[0].error
        assert error is not None
        return error

    return get


@pytest.fixture
def user_model(tmp_path: Path) -> Callable[[str], ModelSource]:
    """A user's model file with the given text."""

    def write(text: str, name: str = "mine.py") -> ModelSource:
        file = tmp_path / name
        file.write_text(text)
        return find_model(str(file))

    return write


# In place of harness.export.child.worker, which needs torch: the process runs this file first.
_DOUBLE = """
import os, sys, types
sys.path.append({root!r})

def export(on_stage, request, versions, directory):
    from pathlib import Path
    from tests.export.checkout.made import Made
    on_stage("load")
    if request.model.file is None:
        print("in process", os.getpid())
    else:
        exec(compile(request.model.file.read_text(), str(request.model.file), "exec"), {{}})
    on_stage("serialise")
    Made(request, versions, "double").write(Path(directory)).save()
    return {{}}

worker = types.ModuleType("harness.export.child.worker")
worker.export = export
sys.modules[worker.__name__] = worker
"""


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a worker in the place of torch that runs the model's file and exports nothing."""

    def put(whole: str | None = None) -> None:
        folder = tmp_path / "double"
        folder.mkdir(exist_ok=True)
        text = _DOUBLE.format(root=str(project_root())) if whole is None else whole
        (folder / "sitecustomize.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        # not the session's process, which has imported torch
        monkeypatch.setattr("harness.export.batch.ExportProcess", ExportProcess)

    return put
