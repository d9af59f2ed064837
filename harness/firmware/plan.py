"""Everything that decides how the bundled runner is built, and the key that stands for it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.loading import Target
from harness.config.npu import DIRECT
from harness.core.errors import UsageError
from harness.firmware.zephyr.tree import in_kconfig
from harness.firmware.zephyr.workspace import Workspace, find_workspace, require_workspace
from harness.system import paths, toolchain
from harness.system.paths import executorch_package

_OF_PORT = {"host": {"BUILD_TESTING": "OFF"}, "zephyr": {"BUILD_TESTING": "OFF"}}
_TOOLCHAINS = {"cortex_m": "cortex-m.cmake", "linux": "aarch64-linux.cmake"}
_LAYOUT = 2  # raise it when what a directory of the cache holds changes


@dataclass(frozen=True)
class BuildPlan:
    """``zephyr``: where to build when the port is Zephyr's."""

    sources: Path
    toolchain_file: Path | None
    toolchain_id: str
    flatc: str
    schemas: Path
    options: dict[str, str]
    zephyr: Workspace | None = None

    def key(self) -> str:
        facts: list[object] = [
            self.toolchain_id,
            self.flatc,
            str(self.toolchain_file is not None),
            self.options,
        ]
        facts += [self.zephyr.key()] if self.zephyr is not None else []
        digest = hashlib.sha256(json.dumps([_LAYOUT, facts], sort_keys=True).encode())
        self._hash_content(digest)
        return digest.hexdigest()[:32]

    def content(self) -> str:
        """Digest of the files that are read, without options and tools."""
        digest = hashlib.sha256()
        self._hash_content(digest)
        return digest.hexdigest()[:32]

    def _hash_content(self, digest: hashlib._Hash) -> None:
        _hash_files(digest, paths.data_root(), self._own_files())
        _hash_files(digest, self.schemas, sorted(_schema_files(self.schemas)))

    def inputs(self) -> list[Path]:
        """Every file of the harness and of ExecuTorch's schemas that the build may read."""
        return [*self._own_files(), *sorted(_schema_files(self.schemas))]

    def _own_files(self) -> list[Path]:
        root = paths.data_root()
        files = [*_sources(self.sources), *_sources(root / "cmake")]
        if self.options.get("HIL_ETHOSU") == "ON" and self.options.get("HIL_PORT") in DIRECT:
            driver = root / "targets" / "linux" / "ethosu"
            files += [*_sources(driver / "driver_library"), *_sources(driver / "kernel")]
            files.append(driver / "uapi.h")
        return files


def make_plan(target: Target, variant: str, extra: Mapping[str, str]) -> BuildPlan:
    for name, value in extra.items():
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"[^\x00-\x1f;]*", value):
            raise UsageError(f"not a build option: {name}={value}")
    root = paths.data_root()
    schemas = executorch_package()
    cross = _TOOLCHAINS.get(target.port)
    workspace = _workspace(target)
    options = {
        "HIL_PORT": target.port,
        **(_OF_PORT.get(target.port) or {"HIL_CPU": target.cpu}),
        **{f"HIL_{name.upper()}_POOL_BYTES": str(n) for name, n in target.pools.items()},
        **target.cmake,
        **target.variant(variant).cmake,
        **extra,
    }
    return BuildPlan(
        sources=root / "targets" / "runner",
        toolchain_file=None if cross is None else root / "cmake" / "toolchains" / cross,
        toolchain_id=toolchain.toolchain_id(target.toolchain)
        if workspace is None
        else workspace.toolchain_id,
        flatc=str(toolchain.require("flatc")),
        schemas=schemas,
        zephyr=workspace,
        options={**_regions(target), **options} if workspace is None else in_kconfig(options),
    )


def _regions(target: Target) -> dict[str, str]:
    return {f"HIL_REGION_{r.name}": f"0x{r.origin:08x}:0x{r.size:x}" for r in target.memory}


def _workspace(target: Target) -> Workspace | None:
    if target.zephyr is None:
        return None
    require_workspace(target.zephyr.board, target.cpu)
    return find_workspace(target.zephyr.board)


def _schema_files(package: Path) -> Iterator[Path]:
    for folder in ("schema", "devtools/bundled_program/schema"):
        yield from (package / folder).glob("*.fbs")


def _sources(folder: Path) -> list[Path]:
    """All files below but hidden ones (an editor's)."""
    files = []
    for directory, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith((".", "__"))]
        files += [f"{directory}/{name}" for name in names if not name.startswith(".")]
    return [Path(file) for file in sorted(files, key=lambda file: file.split("/"))]


def _hash_files(digest: hashlib._Hash, root: Path, files: Sequence[Path]) -> None:
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        digest.update(content)
