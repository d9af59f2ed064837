"""Programs to look into: those that the tests of exporting use too."""

from __future__ import annotations

from tests.export.conftest import exported, user_model

__all__ = ["exported", "user_model"]
