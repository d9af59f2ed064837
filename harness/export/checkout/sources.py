"""The Python of a checkout of ExecuTorch as it stands: which files, and what is in them.

A file counts if a wheel would carry it: Python, and what ``[tool.setuptools.package-data]`` of
ExecuTorch's ``pyproject.toml`` names (at cff6f4dd32). No other is linked into the environment, so
that what an export can read and what its key stands for are the same: an edited C++ kernel is
not another exporter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.core.errors import UsageError
from harness.system.git import Unreadable, blob_id, changed, tracked

# The packages of ExecuTorch's src/executorch.
_FOLDERS = (
    "backends",
    "codegen",
    "devtools",
    "examples",
    "exir",
    "export",
    "extension",
    "kernels",
    "runtime",
    "schema",
    "util",
)
_KINDS = {".py", ".fbs", ".yaml", ".glsl", ".b64"}
_VERSION, _PIN = "version.txt", "torch_pin.py"
_NEEDED = (
    _VERSION,
    "exir/__init__.py",
    "schema/program.fbs",
    "schema/scalar_type.fbs",
    "devtools/bundled_program/schema/bundled_program_schema.fbs",
    "devtools/bundled_program/schema/scalar_type.fbs",
)


class ExporterIncomplete(UsageError):
    """``missing``: a file below ``path`` that no export can do without."""

    def __init__(self, folder: Path, missing: str, whose: str) -> None:
        self.missing = missing
        super().__init__(
            f"{whose} has no {missing}, and nothing can be exported with the checkout without it",
            hint=f"`git -C {folder} status` tells what was deleted"
            if whose == "the checkout"
            else "reinstall the wheel: delete .venv and run ./hil",
            path=folder,
        )


@dataclass(frozen=True)
class Sources:
    """``files``: names below the checkout with git's name of their content; ``edited``: those of
    them, or deleted ones, that are not as in the commit."""

    files: Mapping[str, str]
    edited: tuple[str, ...]

    def identity(self) -> str:
        """Equal where the same is exported, whatever the commit and wherever the checkout."""
        return hashlib.sha256(json.dumps(sorted(self.files.items())).encode()).hexdigest()


def read_sources(root: Path) -> Sources:
    """Takes tenths of a second. Raises ExporterIncomplete, Unreadable, GitFailed, ToolMissing."""
    within = (*_FOLDERS, _VERSION, _PIN)
    files = {name: content for name, content in tracked(root, within).items() if _counts(name)}
    edited = tuple(name for name in changed(root, within) if _counts(name))
    for name in edited:
        files.pop(name, None)
        if (root / name).is_file():  # not deleted; through a link, as Python reads it
            files[name] = blob_id(_read(root / name))
    for name in _NEEDED:
        if name not in files:
            raise ExporterIncomplete(root, name, "the checkout")
    return Sources(files, edited)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, error) from error


def _counts(name: str) -> bool:
    return name in (_VERSION, _PIN) or PurePosixPath(name).suffix in _KINDS
