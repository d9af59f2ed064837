"""Whether this is CI, where nobody looks on and defaults are the strict ones."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.system.settings import settings


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """``$CI`` as the CI systems set it; empty, 0, false and no are none."""
    return environ.get("CI", "").lower() not in ("", "0", "false", "no")


def is_strict(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether it is a failure that no accepted reference stands behind something: as the settings
    have it, else in CI. Raises SettingsError."""
    said = settings(environ=environ).unproven
    return in_ci(environ) if said is None else said == "fail"
