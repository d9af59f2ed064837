"""Which version of a package is installed, without ``importlib.metadata``: its import alone takes
as long as all that a warm run does before it starts the simulator."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress

_FOLDER = ".dist-info"  # PEP 376; its name begins with that of the package


def version(package: str) -> str | None:
    """As the first folder of ``sys.path`` that has the package says; None where it is in none.

    What is installed otherwise (an egg, a zip) is asked of ``importlib.metadata``.
    """
    wanted = _plain(package)
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.endswith(_FOLDER) and _plain(name.partition("-")[0]) == wanted:
                    return _said(os.path.join(folder, name))
    return _otherwise(package)


def _plain(name: str) -> str:
    """As packages are compared: PEP 503, with the underscores of a folder's name."""
    return re.sub(r"[-_.]+", "_", name).lower()


def _said(folder: str) -> str | None:
    """The ``Version`` of its METADATA, which is in the head of the file."""
    with suppress(OSError), open(os.path.join(folder, "METADATA"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("Version:"):
                return line.partition(":")[2].strip()
            if not line.strip():
                break
    return None


def _otherwise(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
