"""Planted wheels, which pip takes for ExecuTorch's."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from harness.firmware.sources.wheel import LIBRARIES, PLATFORM

VERSION = metadata.version("executorch").partition("+")[0]
WHOLE = (
    "executorch/include/executorch/runtime/core/error.h",
    "executorch/share/cmake/executorch-config.cmake",
    *(f"executorch/lib/{name}" for name in LIBRARIES),
    "executorch/exir/large.py",
)


def plant(folder: Path, members: Iterable[str] = WHOLE, version: str = VERSION) -> Path:
    """A wheel of these members, each of which holds its own name."""
    folder.mkdir(parents=True, exist_ok=True)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    file = folder / f"executorch-{version}-{tag}-{tag}-{PLATFORM}.whl"
    info = f"executorch-{version}.dist-info"
    described = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: executorch\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}-{tag}-{PLATFORM}\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in {**{name: name for name in members}, **described}.items():
            archive.writestr(name, text)
    return file
