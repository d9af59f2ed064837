"""Whether this is CI, where nobody looks on and defaults are the strict ones."""

from __future__ import annotations

import os
from collections.abc import Mapping


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """``$CI`` as the CI systems set it; empty, 0, false and no are none."""
    return environ.get("CI", "").lower() not in ("", "0", "false", "no")
