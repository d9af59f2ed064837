"""The installed ``executorch`` package, whose schemas the exporter writes programs by."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from harness.core.errors import InfraError


def executorch_package() -> Path:
    """Found without importing it. Raises InfraError."""
    spec = importlib.util.find_spec("executorch")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    if not locations:
        raise InfraError(
            "the Python package executorch is not installed; its program schema is needed",
            hint="./hil installs it",
        )
    return Path(locations[0])
