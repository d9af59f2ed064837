"""Programs to run, or to look into."""

from __future__ import annotations

from tests.export.conftest import exported, user_model

__all__ = ["exported", "user_model"]
