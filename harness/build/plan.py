"""What decides how a runner is built, and the key that stands for all of it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfraError, UsageError
from harness.system import paths, remembered, toolchain
from harness.target.loading import Target
from harness.target.npu import DIRECT

if TYPE_CHECKING:
    from harness.build.zephyr.workspace import Workspace

_OF_PORT = {"host": {"BUILD_TESTING": "OFF"}, "zephyr": {"BUILD_TESTING": "OFF"}}
_TOOLCHAINS = {"cortex_m": "cortex-m.cmake", "linux": "aarch64-linux.cmake"}
_LAYOUT = 1  # raise it when what a directory of the cache holds changes


@dataclass(frozen=True)
class BuildPlan:
    """Everything that decides what is built."""

    sources: Path
    toolchain_file: Path | None
    toolchain_id: str
    flatc: str
    schemas: Path
    options: dict[str, str]
    zephyr: Workspace | None = None  # where to build when the port is Zephyr's

    def key(self) -> str:
        facts: list[object] = [
            self.toolchain_id,
            self.flatc,
            str(self.toolchain_file is not None),
            self.options,
        ]
        facts += [self.zephyr.key()] if self.zephyr is not None else []
        text = json.dumps([_LAYOUT, facts], sort_keys=True)
        stamps = remembered.stamps(map(str, self.inputs()))
        asked = None if stamps is None else f"{text}\0{paths.data_root()}\0{stamps}"
        known = None if asked is None else remembered.answer("key", asked)
        if known is not None:
            return known
        digest = hashlib.sha256(text.encode())
        self._hash_content(digest)
        found = digest.hexdigest()[:32]
        if asked is not None:
            remembered.remember("key", asked, found)
        return found

    def content(self) -> str:
        """Of what is read, whatever reads it: files alone, neither options nor tools."""
        digest = hashlib.sha256()
        self._hash_content(digest)
        return digest.hexdigest()[:32]

    def _hash_content(self, digest: hashlib._Hash) -> None:
        _hash_files(digest, paths.data_root(), self._own_files())
        _hash_files(digest, self.schemas, sorted(_schema_files(self.schemas)))

    def inputs(self) -> list[Path]:
        """Every file of ours, and of ExecuTorch's schemas, that the build may read."""
        return [*self._own_files(), *sorted(_schema_files(self.schemas))]

    def _own_files(self) -> list[Path]:
        root = paths.data_root()
        files = [*_sources(self.sources), *_sources(root / "cmake")]
        if self.options.get("HIL_ETHOSU") == "ON" and self.options.get("HIL_PORT") in DIRECT:
            driver = root / "targets" / "linux" / "ethosu"
            files += [*_sources(driver / "driver_library"), *_sources(driver / "kernel")]
            files.append(driver / "uapi.h")
        return files


def make_plan(
    target: Target, variant: str, extra: Mapping[str, str], *, dev_mode: bool = False
) -> BuildPlan:
    for name, value in extra.items():
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"[^\x00-\x1f;]*", value):
            raise UsageError(f"not a build option: {name}={value}")
    root = paths.data_root()
    schemas = executorch_package()
    cross = _TOOLCHAINS.get(target.port)
    workspace = _workspace(target, dev_mode)
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
        options={**_regions(target), **options} if workspace is None else _in_kconfig(options),
    )


def _regions(target: Target) -> dict[str, str]:
    return {f"HIL_REGION_{r.name}": f"0x{r.origin:08x}:0x{r.size:x}" for r in target.memory}


def _in_kconfig(options: Mapping[str, str]) -> dict[str, str]:
    from harness.build.zephyr.tree import in_kconfig

    return in_kconfig(options)


def _workspace(target: Target, dev_mode: bool) -> Workspace | None:
    if target.zephyr is None:
        return None
    from harness.build.zephyr.workspace import find_workspace, require_workspace

    require_workspace(target.zephyr.board, target.cpu)
    return find_workspace(target.zephyr.board, dev_mode=dev_mode)


def executorch_package() -> Path:
    """The installed ``executorch`` package, found without importing it."""
    spec = importlib.util.find_spec("executorch")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    if not locations:
        raise InfraError(
            "the Python package executorch is not installed; its program schema is needed",
            hint="./hil installs it",
        )
    return Path(locations[0])


def _schema_files(package: Path) -> Iterator[Path]:
    for folder in ("schema", "devtools/bundled_program/schema"):
        yield from (package / folder).glob("*.fbs")


def _sources(folder: Path) -> list[Path]:
    """All files below, but for hidden ones (an editor's)."""
    found = []
    for directory, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith((".", "__"))]
        found += [f"{directory}/{name}" for name in names if not name.startswith(".")]
    return [Path(file) for file in sorted(found, key=lambda file: file.split("/"))]


def _hash_files(digest: hashlib._Hash, root: Path, files: Sequence[Path]) -> None:
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        digest.update(content)
