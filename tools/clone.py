"""The clone that tools and tests work on."""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import UsageError
from harness.system.paths import import_root


def project_root() -> Path:
    """The clone that this is. Raises UsageError for an installed package, which has no tests."""
    root = import_root()
    if not (root / "tests" / "doubles").is_dir():
        raise UsageError(
            f"this examines the harness itself, and needs a clone of it; {root} is an installation",
            hint="clone the repository and call ./hil there",
            kind="not_a_clone",
            path=root,
        )
    return root
