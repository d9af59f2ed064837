"""What to export, and the key that names the result. Imports no torch; takes milliseconds."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.config.models import Calibration, ModelSource, require_names, source_files
from harness.core.errors import ToolMissing, UsageError
from harness.export.npu_options import NpuOptions, is_ethos_u, resolve
from harness.system.files import sha256_of

EXPORTERS = ("torch", "executorch", "torchao")
ETHOS_U_EXPORTERS = (*EXPORTERS, "ethos-u-vela", "tosa-tools")


@dataclass(frozen=True)
class ExportRequest:
    """``compile_target`` is the exporter's name for the core, such as ``cortex-m55``.

    For an Ethos-U (``ethos-u55-128``) an empty system configuration or memory mode is
    ExecuTorch's default; for a Cortex-M both are empty. ``direct_drive``: see NpuOptions.
    """

    model: ModelSource
    compile_target: str = "cortex-m55"
    seed: int = 0
    system_config: str = ""
    memory_mode: str = ""
    direct_drive: bool = False
    calibration: Calibration = Calibration.FLOAT64

    @property
    def npu(self) -> NpuOptions:
        """Of a request for an Ethos-U. Raises what ``resolve`` does."""
        return resolve(
            self.compile_target,
            self.system_config,
            self.memory_mode,
            direct_drive=self.direct_drive,
        )


class ExporterMissing(ToolMissing):
    """One of the packages that export a model is not there."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"the Python package '{package}' is not installed, so nothing can be exported",
            hint="run ./hil once: it installs what the export needs",
        )
        self.package = package


def exporter_versions(compile_target: str = "cortex-m55") -> dict[str, str]:
    """Versions of the packages that decide the bytes, read without importing them."""
    names = ETHOS_U_EXPORTERS if is_ethos_u(compile_target) else EXPORTERS
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError as error:
            raise ExporterMissing(name) from error
    return found


def content_key(request: ExportRequest, versions: dict[str, str]) -> str:
    """Equal keys mean equal Programs: everything that decides the bytes is hashed into it."""
    model = request.model
    parts = {
        "model": [model.name, model.module, model.attribute],
        "sources": _user_sources(model),
        "compile_target": request.compile_target,
        "seed": request.seed,
        "calibration": request.calibration,
        "versions": versions,
        "python": platform.python_version_tuple()[:2],
        "exporter": _digests(_own_sources(), Path(__file__).parent.parent),
    }
    name = f"{model.name}-{request.compile_target}"
    if is_ethos_u(request.compile_target):
        npu = request.npu
        parts |= {"system_config": npu.system_config, "memory_mode": npu.memory_mode}
        parts |= {"direct_drive": npu.direct_drive}
        name += f"-{npu.memory_mode}" + ("-direct" if npu.direct_drive else "")
    elif request.system_config or request.memory_mode or request.direct_drive:
        raise UsageError(
            f"a memory mode, a system configuration and direct drive are for an Ethos-U, not for "
            f"'{request.compile_target}'"
        )
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{name}-{digest[:24]}"


def _user_sources(model: ModelSource) -> dict[str, str]:
    if model.file is None:
        return {}
    files = source_files(model.file)
    require_names(model.file)
    return _digests(files, model.file.parent)


def _own_sources() -> tuple[Path, ...]:
    package = Path(__file__).parent
    return tuple(sorted(package.rglob("*.py")))


def _digests(paths: tuple[Path, ...], root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): sha256_of(path) for path in paths}
