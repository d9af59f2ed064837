"""Where a history is, and which tables it has, said without importing a database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness.system.paths import state_dir

VARIABLE = "HIL_HISTORY"
HEAD = "0001"  # the newest of migrations/versions


def history_url(said: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """``--history``, else ``$HIL_HISTORY``, else SQLite in the state directory."""
    return said or environ.get(VARIABLE) or f"sqlite:///{state_dir() / 'history.db'}"


def spool_dir() -> Path:
    """Results that a database did not take wait there."""
    return state_dir() / "spool"
