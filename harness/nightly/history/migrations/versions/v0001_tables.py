"""The tables of the first version. A new database gets the present ones from ``store`` at once.

A later version that changes them adds a step here, and raises ``database.HEAD``.
"""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing: there was no version before."""
