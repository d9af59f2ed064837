"""A state directory of a test's own, which shares only what takes long and cannot be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest


def own_home(folder: Path, shared: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``$HIL_HOME`` with the exports and compiled objects of the session's, and nothing else."""
    for kind in ("programs", "ccache"):
        place = Path(shared) / "cache" / kind
        place.mkdir(parents=True, exist_ok=True)
        (folder / "cache").mkdir(parents=True, exist_ok=True)
        (folder / "cache" / kind).symlink_to(place)
    monkeypatch.setenv("HIL_HOME", str(folder))
    return folder
