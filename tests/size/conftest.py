"""Programs for the size tests: sample models for a Cortex-M and for two Ethos-U."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.request import ExportRequest
from tests.thorough import is_thorough

MODELS = ("add", "ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "linear", "softmax")
SOME = {  # for an NPU, in a push
    "ethos-u55-128": ("add", "ds_cnn"),
    "ethos-u85-256": ("add", "ds_cnn", "resnet8"),
}


@pytest.fixture(scope="session")
def programs(hil_export_process: ExportProcess) -> dict[str, Path]:
    """``compile target/model`` to its .pte; exported once and kept in the program cache."""
    requests = [
        ExportRequest(find_model(model), target)
        for target in ("cortex-m55", *SOME)
        for model in (MODELS if is_thorough() else SOME.get(target, MODELS))
    ]
    results = export(requests, process=hil_export_process)
    return {
        f"{request.compile_target}/{request.model.name}": result.unwrap().pte_path
        for request, result in zip(requests, results, strict=True)
    }
