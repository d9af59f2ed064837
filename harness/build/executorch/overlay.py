"""A checkout and its parts, laid out as ExecuTorch's CMake wants to find them, by links.

The build writes to where it finds flatcc (its ``lib``), wants the checkout's folder to be called
``executorch``, and its submodules inside. Here it gets a folder of that name whose entries are
links to the checkout's and to the parts, so that the user's is only read; flatcc is a copy.
Likewise the SDK: ``core_software`` with the parts, and a ``core_platform``.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.build.executorch.checkout import Checkout

_COPIED = ("flatcc",)
_BOARDS = ("corstone-300", "corstone-320")


@dataclass(frozen=True)
class Overlay:
    """``checkout`` and ``sdk`` are the folders to build from."""

    checkout: Path
    sdk: Path


def lay(checkout: Checkout, folder: Path, platform: Path | None) -> Overlay:
    """Make or mend the overlay in ``folder``. ``platform``: what serves as each board of
    ``core_platform``; None takes the SDK's own."""
    parts = checkout.parts
    root = folder / "executorch"
    _links(root, {e.name: e for e in checkout.root.iterdir()} | {"third-party": None, ".git": None})
    inside = {e.name: e for e in (checkout.root / "third-party").iterdir()}
    inside |= {n: parts[n].folder for n in ("flatbuffers", "gflags", "json")}
    _links(root / "third-party", inside | dict.fromkeys(_COPIED))
    for name in _COPIED:
        _copy(parts[name].folder, parts[name].identity, root / "third-party" / name)
    software = ("core_driver", "cmsis_6", "cmsis-nn")
    _links(folder / "sdk" / "core_software", {name: parts[name].folder for name in software})
    targets = folder / "sdk" / "core_platform" / "targets"
    own = None if platform is not None else parts["core_platform"].folder / "targets"
    _links(targets, {board: platform or (own / board if own else None) for board in _BOARDS})
    return Overlay(root, folder / "sdk")


def _links(folder: Path, wanted: Mapping[str, Path | None]) -> None:
    """Exactly the links that are wanted; what has no target (None) is left alone if it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_symlink() and wanted.get(entry.name) is None:
            entry.unlink()
    for name, target in wanted.items():
        link = folder / name
        if target is None or (link.is_symlink() and link.readlink() == target):
            continue
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _copy(source: Path, identity: str, to: Path) -> None:
    """A copy of a part, made again when the part is another."""
    stamp = to.with_name(f".{to.name}.identity")
    if to.is_dir() and stamp.is_file() and stamp.read_text() == identity:
        return
    fresh = to.with_name(f".{to.name}.{uuid.uuid4().hex[:8]}")
    shutil.copytree(source, fresh, ignore=shutil.ignore_patterns(".git", "build", "lib"))
    shutil.rmtree(to, ignore_errors=True)
    fresh.rename(to)
    stamp.write_text(identity)
