"""A state directory of a test's own, which shares only what takes long and cannot be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest


def own_home(folder: Path, shared: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``$HIL_HOME`` with the exports of the session's, and nothing else."""
    place = Path(shared) / "cache" / "programs"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "programs").symlink_to(place)
    monkeypatch.setenv("HIL_HOME", str(folder))
    return folder
