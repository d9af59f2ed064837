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

from harness.build.zephyr import Workspace, find_workspace
from harness.errors import InfraError, UsageError
from harness.system import paths, toolchain
from harness.target.loading import Target

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
        digest = hashlib.sha256(json.dumps([_LAYOUT, facts], sort_keys=True).encode())
        root = paths.project_root()
        for folder in (self.sources, root / "cmake"):
            _hash_files(digest, root, _sources(folder))
        _hash_files(digest, self.schemas, sorted(_schema_files(self.schemas)))
        return digest.hexdigest()[:32]


def make_plan(
    target: Target, variant: str, extra: Mapping[str, str], *, dev_mode: bool = False
) -> BuildPlan:
    for name, value in extra.items():
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not re.fullmatch(r"[^\x00-\x1f;]*", value):
            raise UsageError(f"not a build option: {name}={value}")
    root = paths.project_root()
    schemas = executorch_package()
    cross = _TOOLCHAINS.get(target.port)
    return BuildPlan(
        sources=root / "targets" / "runner",
        toolchain_file=None if cross is None else root / "cmake" / "toolchains" / cross,
        toolchain_id=toolchain.toolchain_id(target.toolchain),
        flatc=str(toolchain.require("flatc")),
        schemas=schemas,
        zephyr=None
        if target.zephyr is None
        else find_workspace(target.zephyr.board, dev_mode=dev_mode),
        options={
            "HIL_PORT": target.port,
            **(_OF_PORT.get(target.port) or {"HIL_CPU": target.cpu}),
            **{f"HIL_REGION_{r.name}": f"0x{r.origin:08x}:0x{r.size:x}" for r in target.memory},
            **{f"HIL_{name.upper()}_POOL_BYTES": str(n) for name, n in target.pools.items()},
            **target.cmake,
            **target.variant(variant).cmake,
            **extra,
        },
    )


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
        found += [Path(directory) / name for name in names if not name.startswith(".")]
    return sorted(found)


def _hash_files(digest: hashlib._Hash, root: Path, files: Sequence[Path]) -> None:
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        digest.update(content)
