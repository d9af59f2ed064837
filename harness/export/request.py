"""What to export, and the key that names the result. Imports no torch; takes milliseconds."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.errors import ToolMissing
from harness.models import ModelSource, source_files

EXPORTERS = ("torch", "executorch", "torchao")


@dataclass(frozen=True)
class ExportRequest:
    """``compile_target`` is the exporter's name for the core, such as ``cortex-m55``."""

    model: ModelSource
    compile_target: str = "cortex-m55"
    seed: int = 0


def exporter_versions() -> dict[str, str]:
    """Versions of the packages that decide the bytes, read without importing them."""
    try:
        return {name: metadata.version(name) for name in EXPORTERS}
    except metadata.PackageNotFoundError as error:
        raise ToolMissing(
            f"the Python package '{error.name}' is not installed, so nothing can be exported",
            hint="run ./hil once: it installs what the export needs",
            package=error.name,
        ) from error


def content_key(request: ExportRequest, versions: dict[str, str]) -> str:
    """Equal keys mean equal Programs: everything that decides the bytes is hashed into it."""
    model = request.model
    parts = {
        "model": [model.name, model.module, model.attribute],
        "sources": _user_sources(model),
        "compile_target": request.compile_target,
        "seed": request.seed,
        "versions": versions,
        "python": platform.python_version_tuple()[:2],
        "exporter": _digests(_own_sources(), Path(__file__).parent.parent),
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{model.name}-{request.compile_target}-{digest[:24]}"


def _user_sources(model: ModelSource) -> dict[str, str]:
    if model.file is None:
        return {}
    return _digests(source_files(model.file), model.file.parent)


def _own_sources() -> tuple[Path, ...]:
    package = Path(__file__).parent
    return (*sorted(package.glob("*.py")), package.parent / "program.py")


def _digests(paths: tuple[Path, ...], root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }
