"""Programs to report on: those that the tests of exporting use too."""

from __future__ import annotations

from tests.export.conftest import exported

__all__ = ["exported"]
