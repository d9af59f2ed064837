"""The exporter's short cuts change no byte of a program."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from harness.case.models import find_model
from harness.export.request import ExportRequest, exporter_versions
from tests.late import Late

traceback = Late("torch.fx.traceback")
worker = Late("harness.export.worker")


@pytest.mark.parametrize("target", ["cortex-m55", "ethos-u55-128"])
def test_the_shortcuts_change_nothing(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And torch has its own way back afterwards."""
    request, versions = ExportRequest(find_model("qadd2"), target), exporter_versions(target)
    short = worker.export_one(request, versions)
    assert not hasattr(traceback.NodeSource, "__deepcopy__")
    monkeypatch.setattr("harness.export.worker.shortcuts", nullcontext)
    long = worker.export_one(request, versions)
    assert short.pte == long.pte
    assert short.sets == long.sets
