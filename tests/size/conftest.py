"""Programs for the size tests: every sample model for a Cortex-M and for two Ethos-U."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from harness.errors import HarnessError
from harness.export import ExportRequest, export
from harness.models import find_model
from harness.paths import cache_dir

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))  # footprint_samples

MODELS = ("add", "ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder", "linear", "softmax")
ETHOS_U = ("ethos-u55-128", "ethos-u85-256")
_SCRIPT = Path(__file__).with_name("export_ethosu.py")


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """``compile target/model`` to its .pte; exported once and kept in the state directory."""
    with FileLock(_cache() / "lock"):
        found = {f"cortex-m55/{m}": p for m, p in _cortex_m().items()}
        for target in ETHOS_U:
            found |= {f"{target}/{m}": p for m, p in _ethos_u(target).items()}
    return found


def _cache() -> Path:
    folder = cache_dir("size-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cortex_m() -> dict[str, Path]:
    results = export([ExportRequest(find_model(m), "cortex-m55") for m in MODELS])
    for result in results:
        if isinstance(result.error, HarnessError):
            raise result.error
    return {m: r.unwrap().pte_path for m, r in zip(MODELS, results, strict=True)}


def _ethos_u(target: str) -> dict[str, Path]:
    folder = _cache() / target
    missing = [m for m in MODELS if not (folder / f"{m}.pte").exists()]
    if missing:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        run = [sys.executable, str(_SCRIPT), str(folder), target, *missing]
        subprocess.run(run, check=True, timeout=1200, env=environment, capture_output=True)
    return {m: folder / f"{m}.pte" for m in MODELS}
